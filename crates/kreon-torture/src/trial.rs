//! A store under a fault: every failed call is judged, and what is left at the end.

mod ending;

use kreon_base::{Error, ErrorKind};
use kreon_engine::{Engine, Options};
use kreon_sim::{Call, Image};

use crate::check::{is_sound, said};
use crate::class::{Class, Manner};
use crate::content::{self, Content};
use crate::model::Prefix;
use crate::progress::Progress;
use crate::script::{Change, Lifetime, Step, Value};
use crate::settings::{KEPT_BYTES, options};
use crate::store::Store;

/// A store under a fault.
pub struct Trial {
    /// Under test.
    pub store: Store,
    /// What befalls it.
    pub class: Class,
    /// Which call it befalls first.
    pub n: u64,
    /// A fault was met on a device that is no longer in use.
    pub met_before: bool,
    /// No call is made to fail: there is just little space.
    pub is_disk_small: bool,
    /// Everything is read now and then.
    pub reads_meanwhile: bool,
    /// Before the step in which the fault was met.
    before: Progress,
    /// Behind it.
    behind: Option<Progress>,
    /// Nothing can be done with the store any more.
    is_over: bool,
}

impl Trial {
    /// A store to be on what `image` holds, which is `content`; every fourth one keeps log for a change feed.
    pub fn new(image: Image, content: &Content, class: Class, n: u64) -> Self {
        let changes_kept_bytes = if n % 4 == 3 { KEPT_BYTES } else { 0 };
        let options = Options {
            changes_kept_bytes,
            ..options()
        };
        Self {
            store: Store::on(image, content, true).with(options),
            class,
            n,
            met_before: false,
            is_disk_small: false,
            reads_meanwhile: false,
            before: Progress::default(),
            behind: None,
            is_over: false,
        }
    }

    /// Whether a fault was met.
    pub fn has_met(&self) -> bool {
        self.met_before || self.store.device.faults_met() > 0
    }

    /// Opens; an open that meets the fault may fail, but not once more. After a failed flush a device
    /// may show what it will never keep: a power cut comes in between.
    pub fn open(&mut self) -> Result<(), String> {
        let before = self.store.device.faults_met();
        let Err(error) = self.store.open().map(drop) else {
            return Ok(());
        };
        self.is_sensible(&error)
            .map_err(|what| format!("open: {what}"))?;
        if self.store.device.faults_met() == before {
            return Err(format!("open failed without a fault: {error}"));
        }
        self.never_flushes_again()?;
        self.store.device.clear_faults();
        if self.class.call == Some(Call::Flush) || self.class.is_dead() {
            self.met_before = true;
            self.store.power_cycle();
        }
        if self.class.is_silent() {
            // It stays so. What is left is for the end to say.
            self.is_over = true;
            return Ok(());
        }
        self.store
            .open()
            .map(drop)
            .map_err(|again| format!("open after a failed open ({error}): {again}"))
    }

    fn is_sensible(&self, error: &Error) -> Result<(), String> {
        let kind = error.kind();
        let is_refusal = matches!(kind, ErrorKind::Io | ErrorKind::Poisoned);
        let is_expected = match self.class.manner() {
            Manner::Unheard => false,
            Manner::Full => kind == ErrorKind::OutOfSpace,
            Manner::CutShort => is_refusal || kind == ErrorKind::OutOfSpace,
            Manner::Refused => is_refusal,
            Manner::Damaged => matches!(kind, ErrorKind::Corruption | ErrorKind::Poisoned),
        };
        match is_expected && (self.has_met() || self.is_disk_small) {
            true => Ok(()),
            false => Err(format!("unexpected error {error}")),
        }
    }

    /// A flush that failed is the last one of its store.
    fn never_flushes_again(&self) -> Result<(), String> {
        let device = &self.store.device;
        let is_failed = self.class.call == Some(Call::Flush) && device.faults_met() > 0;
        match device.calls(Call::Flush) {
            flushes if is_failed && flushes != self.n => {
                Err(format!("flush {} failed, and there were {flushes}", self.n))
            }
            _ => Ok(()),
        }
    }

    /// Does the steps.
    pub fn run(&mut self, steps: &[Step]) -> Result<(), String> {
        for (number, step) in steps.iter().enumerate() {
            if self.is_over {
                return Ok(());
            }
            // What a lie leaves is read at the end, once.
            if self.class.is_silent() && matches!(step, Step::Reopen) {
                continue;
            }
            let (progress, had_met) = (self.store.progress, self.has_met());
            self.step(step)
                .map_err(|what| format!("step {number}: {what}"))?;
            if !had_met && self.has_met() {
                self.before = progress;
                self.behind = Some(self.store.progress);
            }
            if self.reads_meanwhile && number % 4 == 3 && !self.is_over {
                self.read()
                    .map_err(|what| format!("reading after step {number}: {what}"))?;
            }
        }
        Ok(())
    }

    /// Reads go on, whatever failed.
    fn read(&self) -> Result<(), String> {
        match content::read(self.engine()?) {
            Ok(found) => {
                let expected = self.store.model.content(self.store.model.end());
                match found == expected {
                    true => Ok(()),
                    false => Err(content::difference(&expected, &found)),
                }
            }
            Err(error) => self.is_sensible(&error),
        }
    }

    /// Does a step and judges how it goes.
    pub fn step(&mut self, step: &Step) -> Result<(), String> {
        let begun_units = self.store.progress.begun_units;
        let Err(error) = self.store.step(&alone(step))? else {
            return Ok(());
        };
        self.is_sensible(&error)
            .map_err(|what| format!("{step:?}: {what}"))?;
        if self.class.is_dead() || self.class.is_silent() {
            self.is_over |= self.class.is_dead() || matches!(step, Step::Create(_) | Step::Drop(_));
            return self.settle_silently(step);
        }
        match step {
            // A load of nothing: there is no unit to be taken back.
            Step::Ingest(..) if self.store.progress.begun_units == begun_units => {
                return self.settle_empty_load(&error);
            }
            Step::Ingest(..) if error.kind() != ErrorKind::OutOfSpace => {
                return self.settle_load(&error);
            }
            Step::Write(..) | Step::Ingest(..) => self.settle_write(&error)?,
            Step::Create(_) | Step::Drop(_) => self.settle_region_change(&error)?,
            Step::Reopen => return self.reopen(),
            _ => {}
        }
        if error.kind() == ErrorKind::OutOfSpace {
            self.met_before |= self.is_disk_small;
            return self.check_deletions();
        }
        Ok(())
    }

    fn engine(&self) -> Result<&Engine, String> {
        self.store.engine().map_err(said("engine"))
    }

    /// Whether a write that failed is seen is not asked; it may have happened.
    fn settle_silently(&mut self, step: &Step) -> Result<(), String> {
        self.is_over |= matches!(step, Step::Write(..) | Step::Ingest(..));
        Ok(())
    }

    /// A write failed: whether readers see it is for the store to say, but it is one or the other.
    fn settle_write(&mut self, error: &Error) -> Result<(), String> {
        let Some(found) = self.read_past()? else {
            return Ok(());
        };
        let end = self.store.model.end();
        if error.kind() != ErrorKind::OutOfSpace && found == self.store.model.content(end) {
            return Ok(());
        }
        self.store.undo_write();
        let expected = self.store.model.content(self.store.model.end());
        if found == expected {
            return Ok(());
        }
        let text = content::difference(&expected, &found);
        Err(format!("after a write that failed with {error}: {text}"))
    }

    /// A load without pairs failed, in what comes before them: readers see what they saw.
    fn settle_empty_load(&mut self, error: &Error) -> Result<(), String> {
        let Some(found) = self.read_past()? else {
            return Ok(());
        };
        let expected = self.store.model.content(self.store.model.end());
        if found != expected {
            let text = content::difference(&expected, &found);
            return Err(format!(
                "after an empty load that failed with {error}: {text}"
            ));
        }
        match error.kind() {
            ErrorKind::OutOfSpace => self.check_deletions(),
            _ => self.reopen(),
        }
    }

    /// A load failed: readers see all of it or nothing. In doubt it stays begun: a reopened store may have
    /// it.
    fn settle_load(&mut self, error: &Error) -> Result<(), String> {
        let Some(found) = self.read_past()? else {
            return Ok(());
        };
        let end = self.store.model.end();
        let before = Prefix {
            units: end.units.saturating_sub(1),
            ..end
        };
        let expected = self.store.model.content(before);
        if found != expected && found != self.store.model.content(end) {
            let text = content::difference(&expected, &found);
            return Err(format!("after a load that failed with {error}: {text}"));
        }
        self.reopen()
    }

    /// Reads everything; if the fault befalls that too, it is taken back.
    fn read_past(&mut self) -> Result<Option<Content>, String> {
        let error = match content::read(self.engine()?) {
            Ok(found) => return Ok(Some(found)),
            Err(error) => error,
        };
        self.is_sensible(&error)?;
        self.met_before = true;
        self.store.device.clear_faults();
        let found = content::read(self.engine()?).map_err(said("read after a failed write"))?;
        Ok(Some(found))
    }

    fn settle_region_change(&mut self, error: &Error) -> Result<(), String> {
        let found = self.engine()?.region_names();
        let names = |store: &Store| {
            store
                .model
                .content(store.model.end())
                .into_keys()
                .collect::<Vec<_>>()
        };
        if found == names(&self.store) {
            return Ok(());
        }
        // In doubt it stays begun: a reopened store may have it.
        let expected = self.store.model.clone();
        self.store.undo_region_change();
        if found != names(&self.store) {
            return Err(format!(
                "regions {found:?} after a change that failed with {error}"
            ));
        }
        if error.kind() != ErrorKind::OutOfSpace {
            self.store.model = expected;
            self.store.progress.begun_region_changes += 1;
            // No later step relies on either.
            return self.reopen();
        }
        Ok(())
    }

    /// Ends the store, which may be poisoned, and opens what a power cut leaves, without faults.
    fn reopen(&mut self) -> Result<(), String> {
        self.met_before = self.has_met();
        self.store.abandon();
        self.never_flushes_again()?;
        self.store.power_cycle();
        self.open()?;
        let progress = self.store.progress;
        let found = content::read(self.engine()?).map_err(said("read"))?;
        let units = progress.durable_units..=progress.begun_units;
        let changes = progress.durable_region_changes..=progress.begun_region_changes;
        if self.store.model.find(&found, units, changes).is_none() {
            let expected = self.store.model.content(self.store.model.end());
            return Err(format!(
                "reopened, {progress:?}: {}",
                content::difference(&expected, &found)
            ));
        }
        self.store.rebase(&found);
        Ok(())
    }

    /// A full store takes deletions.
    fn check_deletions(&mut self) -> Result<(), String> {
        let content = self.store.model.content(self.store.model.end());
        let all = content
            .iter()
            .flat_map(|(name, pairs)| pairs.keys().map(move |key| (name, key)));
        let victims: Vec<_> = all
            .step_by(7)
            .take(5)
            .map(|(n, k)| (n.clone(), k.clone()))
            .collect();
        for (region, key) in victims {
            let change = Change {
                region,
                key,
                value: None,
                until: None,
                lifetime: Lifetime::Unlimited,
            };
            let step = Step::Write(vec![change], kreon_engine::Durability::Sync);
            if let Err(error) = self.store.step(&step)? {
                let may_end = self.class.manner() == Manner::CutShort;
                if may_end && matches!(error.kind(), ErrorKind::Poisoned | ErrorKind::Io) {
                    return self.settle_write(&error);
                }
                return Err(format!("a deletion on a full device: {error}"));
            }
        }
        Ok(())
    }

    /// Deletes everything and makes that durable.
    pub fn empty(&mut self) -> Result<(), String> {
        let content = self.store.model.content(self.store.model.end());
        for (region, pairs) in content {
            for key in pairs.into_keys() {
                let change = Change {
                    region: region.clone(),
                    key,
                    value: None,
                    until: None,
                    lifetime: Lifetime::Unlimited,
                };
                let step = Step::Write(vec![change], kreon_engine::Durability::Buffered);
                self.store
                    .step(&step)?
                    .map_err(|error| format!("emptying a full store: {error}"))?;
            }
        }
        let outcome = self.store.step(&Step::Checkpoint)?;
        outcome.map_err(|error| format!("a checkpoint of an emptied store: {error}"))
    }

    /// A store that had no room and is not poisoned takes new data when there is room again.
    fn check_is_poisoned_or_works(&mut self) -> Result<(), String> {
        match self.put_again() {
            Err(what) if what.contains("poisoned") && self.has_met() && !self.must_go_on() => {
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// Faults of these classes never stop a store.
    fn must_go_on(&self) -> bool {
        matches!(self.class.manner(), Manner::Full | Manner::Unheard)
    }

    /// Makes a region, puts, spills, and verifies.
    pub fn put_again(&mut self) -> Result<(), String> {
        let value = Some(Value {
            len_bytes: 3000,
            seed: 8,
        });
        let change = Change {
            region: "again".to_owned(),
            key: b"key".to_vec(),
            value,
            until: None,
            lifetime: Lifetime::Unlimited,
        };
        let durability = kreon_engine::Durability::Sync;
        for step in [
            Step::Create("again".to_owned()),
            Step::Write(vec![change], durability),
            Step::Checkpoint,
        ] {
            if let Err(error) = self.store.step(&step)? {
                return Err(format!("{step:?} without a fault: {error}"));
            }
        }
        let content = self.store.model.content(self.store.model.end());
        is_sound(self.engine()?, &content)
    }
}

/// A load without writes beside it: of a step that fails, one unit may be missing and not two.
fn alone(step: &Step) -> Step {
    let mut step = step.clone();
    if let Step::Ingest(_, handed) = &mut step {
        handed.iter_mut().for_each(|handed| handed.before.clear());
    }
    step
}
