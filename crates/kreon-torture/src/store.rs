//! A store on a simulated device, driven by steps, beside the model of what it must hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use kreon_base::{Error, ErrorKind, Result};
use kreon_device::Device;
use kreon_engine::{Background, Durability, Engine, OpenSnapshot, Operation, Options};
use kreon_sim::{Image, Keep, SimDevice, SimOptions};

use crate::content::{self, Content, Digest};
use crate::model::{Model, Prefix};
use crate::script::{Change, Step};

/// Settings under which every course is the same each time, and spills come often.
pub fn options() -> Options {
    Options {
        memory_bytes: kreon_engine::MEMORY_BYTES_MIN,
        l0_bytes: Some(L0_BYTES),
        volume_bytes_max: 256 << 20,
        background: Background::Inline,
        scatter_pages: true,
        store_id: Some(0x6b72_656f_6e5f_7369),
        ..Options::default()
    }
}

const L0_BYTES: usize = 4 << 10;

/// What must have survived, and what may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Units that were acknowledged as durable, those before them included.
    pub durable_units: usize,
    /// Units that were begun.
    pub begun_units: usize,
    /// Changes of regions that were acknowledged.
    pub durable_region_changes: usize,
    /// Changes of regions that were begun.
    pub begun_region_changes: usize,
}

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
    engine: Option<Engine>,
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
            engine: None,
            snapshot: None,
        }
    }

    /// Opens the store, if it is not open.
    pub fn open(&mut self) -> Result<&Engine> {
        let engine = match self.engine.take() {
            Some(engine) => engine,
            None => Engine::open(Arc::clone(&self.device) as Arc<dyn Device>, options())?,
        };
        Ok(self.engine.insert(engine))
    }

    /// The open store.
    ///
    /// # Errors
    /// `Closed`.
    pub fn engine(&self) -> Result<&Engine> {
        let closed = || Error::new(ErrorKind::Closed, "the harness has no open store");
        self.engine.as_ref().ok_or_else(closed)
    }

    /// Forgets the open store, without regard to how its end goes.
    pub fn abandon(&mut self) {
        self.snapshot = None;
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
        self.note();
    }

    /// Does a step. An inner error is what the store said; an outer one is what it should not have
    /// done. After an inner error the step may have taken effect or not: the model says that it has.
    pub fn step(&mut self, step: &Step) -> Result<Result<()>, String> {
        let outcome = match step {
            Step::Write(changes, durability) => self.write(changes, *durability),
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
            Step::Reopen => self.reopen(),
            Step::Snapshot => self.open_snapshot(),
            Step::Release => return self.release_snapshot(),
        };
        self.note();
        Ok(outcome)
    }

    fn write(&mut self, changes: &[Change], durability: Durability) -> Result<()> {
        let engine = self
            .engine
            .as_ref()
            .ok_or_else(|| Error::new(ErrorKind::Closed, "not open"))?;
        let values: Vec<_> = changes
            .iter()
            .map(|c| c.value.map(|value| value.bytes()))
            .collect();
        let mut regions = BTreeMap::new();
        for change in changes {
            regions.insert(&change.region, engine.existing_region(&change.region)?);
        }
        let operations: Vec<_> = changes
            .iter()
            .zip(&values)
            .filter_map(|(change, value)| {
                let region = regions.get(&change.region)?;
                Some(Operation {
                    region,
                    key: &change.key,
                    value: value.as_deref(),
                })
            })
            .collect();
        let digests: Vec<_> = values
            .iter()
            .map(|v| v.as_deref().map(Digest::of))
            .collect();
        self.model.write(changes, &digests);
        self.progress.begun_units += 1;
        let at = (self.device.events(), self.progress);
        self.timeline.push(at);
        let outcome = engine.write(&operations, durability);
        if outcome.is_ok() && durability == Durability::Sync {
            self.progress.durable_units = self.progress.begun_units;
        }
        outcome
    }

    fn create(&mut self, name: &str) -> Result<()> {
        if !self.model.has_region(name) {
            self.model.make_region(name);
            self.begin_region_change();
        }
        self.engine()?.region(name)?;
        self.progress.durable_region_changes = self.progress.begun_region_changes;
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

    fn all_durable(&mut self) {
        self.progress.durable_units = self.progress.begun_units;
    }

    fn note(&mut self) {
        let at = (self.device.events(), self.progress);
        if self.timeline.last() != Some(&at) {
            self.timeline.push(at);
        }
    }
}

fn device(image: Image, record: bool) -> Arc<SimDevice> {
    let options = SimOptions {
        record,
        len_bytes_max: 256 << 20,
        ..SimOptions::default()
    };
    Arc::new(SimDevice::from_image(image, options))
}

/// What a power cut after `events` events must have left, and what it may have: the bounds of both
/// prefixes.
pub fn progress_at(timeline: &[(usize, Progress)], events: usize) -> Progress {
    let acknowledged = timeline.iter().rev().find(|(at, _)| *at <= events);
    let begun = timeline.iter().rev().find(|(at, _)| *at < events);
    let acknowledged = acknowledged.map(|(_, p)| *p).unwrap_or_default();
    let begun = begun.map(|(_, p)| *p).unwrap_or_default();
    Progress {
        durable_units: acknowledged.durable_units,
        begun_units: begun.begun_units.max(acknowledged.durable_units),
        durable_region_changes: acknowledged.durable_region_changes,
        begun_region_changes: begun
            .begun_region_changes
            .max(acknowledged.durable_region_changes),
    }
}
