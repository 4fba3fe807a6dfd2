//! A store under a fault: every failed call is judged, and what is left at the end.

use kreon_base::{Error, ErrorKind};
use kreon_engine::Engine;
use kreon_sim::{Call, Effect, Keep};

use crate::check::{After, check, is_sound, said};
use crate::content;
use crate::script::{Change, Step, Value};
use crate::store::Store;

/// What a sweep fails.
#[derive(Clone, Copy)]
pub struct Class {
    /// Its name.
    pub name: &'static str,
    /// What fails.
    pub call: Call,
    /// How.
    pub effect: Effect,
    /// All calls from the n-th on, not this one alone.
    pub for_ever: bool,
}

impl Class {
    /// One call fails.
    pub const fn once(name: &'static str, call: Call, effect: Effect) -> Self {
        Self {
            name,
            call,
            effect,
            for_ever: false,
        }
    }

    /// All calls fail from some on.
    pub const fn from_then_on(name: &'static str, call: Call, effect: Effect) -> Self {
        Self {
            name,
            call,
            effect,
            for_ever: true,
        }
    }
}

/// What a run met.
pub struct Outcome {
    /// Whether a fault was met.
    pub met: bool,
    /// Calls of the kind that fails.
    pub calls: u64,
}

/// A store under a fault.
pub struct Trial {
    /// Under test.
    pub store: Store,
    /// What befalls it.
    pub class: Class,
    /// A fault was met on a device that is no longer in use.
    pub met_before: bool,
    /// No call is made to fail: there is just little space.
    pub is_disk_small: bool,
}

impl Trial {
    fn has_met(&self) -> bool {
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
        self.store.device.clear_faults();
        if self.class.call == Call::Flush {
            self.met_before = true;
            self.store.power_cycle();
        }
        self.store
            .open()
            .map(drop)
            .map_err(|again| format!("open after a failed open ({error}): {again}"))
    }

    fn is_sensible(&self, error: &Error) -> Result<(), String> {
        let is_expected = match error.kind() {
            ErrorKind::Io | ErrorKind::Poisoned => true,
            ErrorKind::OutOfSpace => self.class.effect == Effect::OutOfSpace,
            _ => false,
        };
        let is_expected =
            is_expected && (!self.is_disk_small || error.kind() == ErrorKind::OutOfSpace);
        match is_expected && (self.has_met() || self.is_disk_small) {
            true => Ok(()),
            false => Err(format!("unexpected error {error}")),
        }
    }

    /// Does a step and judges how it goes.
    pub fn step(&mut self, step: &Step) -> Result<(), String> {
        if self.is_moot(step) {
            return Ok(());
        }
        let Err(error) = self.store.step(step)? else {
            return Ok(());
        };
        self.is_sensible(&error)
            .map_err(|what| format!("{step:?}: {what}"))?;
        match step {
            Step::Write(..) => self.settle_write(&error)?,
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

    /// The step names a region that is not there, because its making failed.
    fn is_moot(&self, step: &Step) -> bool {
        match step {
            Step::Write(changes, _) => changes
                .iter()
                .any(|c| !self.store.model.has_region(&c.region)),
            Step::Drop(name) => !self.store.model.has_region(name),
            _ => false,
        }
    }

    fn engine(&self) -> Result<&Engine, String> {
        self.store.engine().map_err(said("engine"))
    }

    /// A write failed: whether readers see it is for the store to say, but it is one or the other.
    fn settle_write(&mut self, error: &Error) -> Result<(), String> {
        let found = content::read(self.engine()?).map_err(said("read after a failed write"))?;
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
            };
            let step = Step::Write(vec![change], kreon_engine::Durability::Sync);
            if let Err(error) = self.store.step(&step)? {
                if error.kind() == ErrorKind::Poisoned && self.class.call == Call::Write {
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

    /// Without faults: what is there now, what a reopen finds, what power cuts leave; and that the
    /// store works again.
    pub fn finish(mut self) -> Result<Outcome, String> {
        let outcome = Outcome {
            met: self.has_met(),
            calls: self.store.device.calls(self.class.call),
        };
        self.store.device.clear_faults();
        let found = content::read(self.engine()?).map_err(said("the last read"))?;
        let expected = self.store.model.content(self.store.model.end());
        if found != expected {
            return Err(format!(
                "at the end: {}",
                content::difference(&expected, &found)
            ));
        }
        self.check_is_poisoned_or_works()?;
        let progress = self.store.progress;
        let history = self.store.device.history();
        let crash = history.crash();
        for mut keep in [Keep::Nothing, Keep::All, Keep::SomeSectors { seed: 5 }] {
            check(
                crash.image(&mut keep),
                &self.store.model,
                progress,
                After::Checkpoint,
                false,
            )
            .map_err(|what| format!("power cut at the end, {keep:?}: {what}"))?;
        }
        self.reopen()?;
        let content = self.store.model.content(self.store.model.end());
        is_sound(self.engine()?, &content)?;
        self.put_again()?;
        Ok(outcome)
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
        match self.class.call {
            Call::Allocate | Call::Grow => self.class.effect == Effect::OutOfSpace,
            Call::Discard => true,
            _ => false,
        }
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
