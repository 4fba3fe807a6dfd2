//! A store on a simulated device, driven by steps, beside the model of what it must hold.

mod opening;
mod unit;

use std::collections::BTreeMap;
use std::sync::Arc;

use kreon_base::{Error, ErrorKind, Result};
use kreon_device::Device;
use kreon_engine::{Background, Durability, Engine, OpenSnapshot, Options, Work};
use kreon_sim::{Image, Keep, SimDevice};

use crate::content::{self, Content};
use crate::duet::{Done, Duet, Job, is_harmless};
use crate::load;
use crate::model::{Model, Prefix};
use crate::own_options::options_of;
use crate::progress::Progress;
use crate::script::{Change, Step};
use crate::settings::{options, with_memory_min};

use opening::device;
pub use opening::{Opener, collect};

/// See the module's text.
pub struct Store {
    /// Under the store.
    pub device: Arc<SimDevice>,
    /// What it must hold.
    pub model: Model,
    /// The progress from so many events of the device on, ascending.
    pub timeline: Vec<(usize, Progress)>,
    /// Now.
    pub progress: Progress,
    /// What counts up to so many events of the device, where it is not `model`: a killed process takes
    /// along what it had in memory.
    pub chapters: Vec<(usize, Model)>,
    /// Who works beside the steps, if anybody does.
    duet: Option<Duet>,
    /// Units that a step has returned for.
    acknowledged: usize,
    options: Options,
    opener: Option<Opener>,
    engine: Option<Arc<Engine>>,
    snapshot: Option<(Arc<OpenSnapshot>, Prefix)>,
}

impl Store {
    /// A store to be on what `image` holds, which is `content`. Not open yet.
    pub fn on(image: Image, content: &Content, record: bool) -> Self {
        Self {
            device: device(image, record),
            model: Model::of(content),
            timeline: vec![(0, Progress::default())],
            progress: Progress::default(),
            chapters: Vec::new(),
            duet: None,
            acknowledged: 0,
            options: options(),
            opener: None,
            engine: None,
            snapshot: None,
        }
    }

    /// The same store with other settings.
    #[must_use]
    pub fn with(self, options: Options) -> Self {
        Self { options, ..self }
    }

    /// The same store, opened in another way.
    #[must_use]
    pub fn opened_by(self, opener: Opener) -> Self {
        Self {
            opener: Some(opener),
            ..self
        }
    }

    /// The same store, used by a process that can be killed; with background work as `seed` decides if
    /// `has_back`.
    #[must_use]
    pub fn in_a_process(mut self, seed: u64, has_back: bool) -> Self {
        let duet = Duet::new(seed, has_back);
        self.device.set_turns(Some(duet.turns()));
        if has_back {
            self.options.background = Background::Driven;
        }
        self.duet = Some(duet);
        self
    }

    /// Opens the store, if it is not open.
    pub fn open(&mut self) -> Result<&Engine> {
        let engine = match self.engine.take() {
            Some(engine) => engine,
            None => {
                let device = Arc::clone(&self.device) as Arc<dyn Device>;
                let options = with_memory_min(self.options.clone());
                match &self.opener {
                    Some(open) => open(device, options)?,
                    None => Arc::new(Engine::open(device, options)?),
                }
            }
        };
        if let Some(duet) = &self.duet {
            duet.set_engine(Some(Arc::clone(&engine)));
        }
        Ok(self.engine.insert(engine))
    }

    /// The open store.
    ///
    /// # Errors
    /// `Closed`.
    pub fn engine(&self) -> Result<&Engine> {
        let closed = || Error::new(ErrorKind::Closed, "the harness has no open store");
        self.engine.as_deref().ok_or_else(closed)
    }

    /// The same, to keep.
    pub fn shared_engine(&self) -> Result<Arc<Engine>> {
        let closed = || Error::new(ErrorKind::Closed, "the harness has no open store");
        self.engine.clone().ok_or_else(closed)
    }

    /// See [`Duet::meetings`].
    pub fn meetings(&self) -> u64 {
        self.duet.as_ref().map_or(0, Duet::meetings)
    }

    /// Forgets the open store, without regard to how its end goes.
    pub fn abandon(&mut self) {
        self.snapshot = None;
        self.device.set_turns(None);
        self.duet = None;
        self.engine = None;
    }

    /// Puts a device in place of this one that holds all that was ever written to it, durable, and
    /// has no faults.
    pub fn power_cycle(&mut self) {
        let image = self.device.history().crash().image(&mut Keep::All);
        self.device = device(image, true);
        self.timeline.clear();
        self.note();
    }

    /// Starts anew with a model of `content`, which the device holds for good.
    pub fn rebase(&mut self, content: &Content) {
        self.model = Model::of(content);
        self.progress = Progress::default();
        self.acknowledged = 0;
        self.note();
    }

    /// Does a step. An inner error is what the store said; an outer one is what it should not have
    /// done. After an inner error the step may have taken effect or not: the model says that it has.
    pub fn step(&mut self, step: &Step) -> Result<Result<()>, String> {
        if let Some(duet) = &self.duet {
            duet.enter(self.progress.durable_units.max(self.acknowledged));
        }
        let outcome = self.carry_out(step)?;
        if outcome.is_ok() {
            self.acknowledged = self.progress.begun_units;
        }
        self.collect()?;
        self.note();
        Ok(outcome)
    }

    /// Learns what came of background work.
    fn collect(&mut self) -> Result<(), String> {
        let done = self.duet.as_ref().map(Duet::leave).unwrap_or_default();
        for Done {
            job,
            outcome,
            acknowledged,
        } in done
        {
            match outcome.map_err(|what| format!("background {job:?}: {what}"))? {
                Ok(()) if matches!(job, Job::Sync | Job::Checkpoint) => {
                    let durable_units = self.progress.durable_units.max(acknowledged);
                    self.progress.durable_units = durable_units;
                }
                Err(error) if !is_harmless(&error) => {
                    return Err(format!("background {job:?}: {error}"));
                }
                _ => {}
            }
        }
        self.note();
        Ok(())
    }

    /// Ends the background work, and judges how it went.
    ///
    /// # Errors
    /// What it should not have done.
    pub fn finish(&mut self) -> Result<(), String> {
        if let Some(duet) = &self.duet {
            duet.drain();
        }
        self.collect()
    }

    /// Does a step while a load runs, in the middle of another step. As [`step`](Self::step), but for the
    /// background work, which goes on anyway.
    pub(crate) fn beside(&mut self, step: &Step) -> Result<Result<()>, String> {
        let outcome = self.carry_out(step)?;
        self.note();
        Ok(outcome)
    }

    /// The step names a region that is not there, because its making failed or a kill undid it: nothing is done then.
    pub(crate) fn is_moot(&self, step: &Step) -> bool {
        let is_missing = |region: &String| !self.model.has_region(region);
        match step {
            Step::Write(changes, _) => changes.iter().any(|change| is_missing(&change.region)),
            Step::Drop(region) | Step::Ingest(region, _) => is_missing(region),
            _ => false,
        }
    }

    fn carry_out(&mut self, step: &Step) -> Result<Result<()>, String> {
        if self.is_moot(step) {
            return Ok(Ok(()));
        }
        Ok(match step {
            Step::Write(changes, durability) => self.write(changes, *durability),
            Step::Ingest(region, handed) => return load::ingest(self, region, handed),
            Step::Create(name) => self.create(name),
            Step::Drop(name) => self.drop_region(name),
            Step::Checkpoint => self
                .engine()
                .and_then(Engine::checkpoint)
                .map(|()| self.all_durable()),
            Step::Sync => self
                .engine()
                .and_then(Engine::sync)
                .map(|()| self.all_durable()),
            Step::WriteOut => self.background(Work::WriteOut),
            Step::Image => self.background(Work::Image),
            Step::Collect => {
                let engine = self.engine();
                engine.and_then(collect)
            }
            Step::Prepare => self.background(Work::Prepare),
            Step::Reopen => self.reopen(),
            Step::Kill => return self.kill(),
            Step::Snapshot => self.open_snapshot(),
            Step::Release => return self.release_snapshot(),
            Step::Read => return self.read(),
        })
    }

    fn background(&self, work: Work) -> Result<()> {
        self.engine()?.background(work)
    }

    /// What readers see is everything that was acknowledged.
    fn read(&self) -> Result<Result<()>, String> {
        let found = match self.engine().and_then(content::read) {
            Ok(found) => found,
            Err(error) => return Ok(Err(error)),
        };
        let expected = self.model.content(self.model.end());
        match found == expected {
            true => Ok(Ok(())),
            false => Err(format!("read: {}", content::difference(&expected, &found))),
        }
    }

    /// The process ends at once, without a word to the store; the device stays as it is. Another one
    /// opens the store: it finds a prefix, and what that lacks never comes back.
    fn kill(&mut self) -> Result<Result<()>, String> {
        self.snapshot = None;
        let engine = self.engine.take();
        let Some(duet) = &self.duet else {
            return Err("only a process can be killed".to_owned());
        };
        duet.kill(engine);
        let (at, before) = (self.device.events(), self.progress);
        let found = match self.open().and_then(content::read) {
            Ok(found) => found,
            Err(error) => return Err(format!("open after the process was killed: {error}")),
        };
        let units = before.durable_units..=before.begun_units;
        let changes = before.durable_region_changes..=before.begun_region_changes;
        let Some(prefix) = self.model.find(&found, units, changes) else {
            let expected = self.model.content(self.model.end());
            let text = content::difference(&expected, &found);
            return Err(format!("after the process was killed, {before:?}: {text}"));
        };
        self.chapters.push((at, self.model.clone()));
        self.model.truncate(prefix);
        let begun = Progress {
            begun_units: prefix.units,
            begun_region_changes: prefix.region_changes,
            ..before
        };
        self.timeline.push((at, begun));
        self.progress = Progress {
            durable_units: prefix.units,
            durable_region_changes: prefix.region_changes,
            ..begun
        };
        self.acknowledged = prefix.units;
        Ok(Ok(()))
    }

    /// Writes one unit.
    pub fn write(&mut self, changes: &[Change], durability: Durability) -> Result<()> {
        let engine = self.shared_engine()?;
        let values: Vec<_> = changes.iter().map(Change::value_bytes).collect();
        let mut regions = BTreeMap::new();
        for change in changes {
            regions.insert(&change.region, engine.existing_region(&change.region)?);
        }
        let pairs = changes.iter().zip(&values);
        let digests: Vec<_> = pairs
            .map(|(change, value)| change.digest(value.as_deref()))
            .collect();
        self.model.write(changes, &digests);
        self.progress.begun_units += 1;
        let at = (self.device.events(), self.progress);
        self.timeline.push(at);
        let outcome = match unit::is_commit(self.progress.begun_units, changes) {
            true => unit::commit(&engine, &regions, changes, durability),
            false => unit::write(&engine, &regions, changes.iter().zip(&values), durability),
        };
        if outcome.is_ok() && durability == Durability::Sync {
            self.all_durable();
        }
        outcome
    }

    fn create(&mut self, name: &str) -> Result<()> {
        if !self.model.has_region(name) {
            self.model.make_region(name);
            self.begin_region_change();
        }
        let engine = self.engine()?;
        if !name.ends_with("ta") {
            let region = (name, &options_of(name));
            return engine
                .region_with_options(region, Durability::Buffered)
                .map(drop);
        }
        engine.region_with_options((name, &options_of(name)), Durability::Sync)?;
        self.all_durable();
        Ok(())
    }

    fn drop_region(&mut self, name: &str) -> Result<()> {
        // A snapshot no longer sees what is gone.
        self.snapshot = None;
        self.model.drop_region(name);
        self.begin_region_change();
        self.engine()?.drop_region(name)?;
        self.progress.durable_region_changes = self.progress.begun_region_changes;
        Ok(())
    }

    fn begin_region_change(&mut self) {
        self.progress.begun_region_changes += 1;
        self.note();
    }

    fn reopen(&mut self) -> Result<()> {
        self.snapshot = None;
        self.engine()?.close()?;
        self.all_durable();
        self.note();
        if let Some(duet) = &self.duet {
            duet.drain();
            duet.set_engine(None);
        }
        self.engine = None;
        self.open()?;
        Ok(())
    }

    fn open_snapshot(&mut self) -> Result<()> {
        self.snapshot = None;
        let snapshot = self.engine()?.snapshot();
        self.snapshot = Some((snapshot, self.model.end()));
        Ok(())
    }

    fn release_snapshot(&mut self) -> Result<Result<()>, String> {
        let Some((snapshot, prefix)) = self.snapshot.take() else {
            return Ok(Ok(()));
        };
        let Ok(engine) = self.engine() else {
            return Ok(Ok(()));
        };
        let mut found = match content::read_at(engine, &snapshot) {
            Ok(found) => found,
            Err(error) => return Ok(Err(error)),
        };
        // Regions that were made later are there, and empty.
        let expected = self.model.content(prefix);
        found.retain(|name, pairs| expected.contains_key(name) || !pairs.is_empty());
        if found != expected {
            return Err(format!(
                "a snapshot changed: {}",
                content::difference(&expected, &found)
            ));
        }
        Ok(Ok(()))
    }

    /// Takes back the last unit: it was refused.
    pub fn undo_write(&mut self) {
        self.model.undo_write();
        self.progress.begun_units -= 1;
        self.note();
    }

    /// Takes back the last change of regions: it was refused.
    pub fn undo_region_change(&mut self) {
        self.model.undo_region_change();
        self.progress.begun_region_changes -= 1;
        self.note();
    }

    /// All units and changes of regions are known to be durable.
    pub fn all_durable(&mut self) {
        self.progress.durable_units = self.progress.begun_units;
        self.progress.durable_region_changes = self.progress.begun_region_changes;
    }

    /// Notes the progress of now.
    pub fn note(&mut self) {
        let at = (self.device.events(), self.progress);
        if self.timeline.last() != Some(&at) {
            self.timeline.push(at);
        }
    }
}
