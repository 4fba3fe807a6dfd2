//! Chains of backups of a store that goes on: each is restored, and must be the store at its moment.
//!
//! One thread, few keys, a map beside the store: puts short and long, batches, deletions, deletions of ranges, regions that
//! are dropped and made anew, checkpoints, merges, collection, and openings anew. Every backup builds on the one before.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use kreon_base::{Error, ErrorKind, Result};
use kreon_device::Device;
use kreon_engine::{
    Access, BackupOptions, DeletedRange, Durability, Engine, Operation, RegionState, Shelf, Terms,
    Work, check_backup, restore_backup,
};
use kreon_sim::{Dice, Image, SimDevice, SimOptions};
use parking_lot::Mutex;

use crate::Counts;
use crate::seeds::{judged, many};
use crate::settings::options;

const KEYS: u64 = 400;
const BACKUPS: u64 = 10;
const REGIONS: [&str; 3] = ["one", "two", "three"];

/// Files in memory.
#[derive(Default)]
pub struct SimShelf {
    files: Mutex<BTreeMap<String, Arc<SimDevice>>>,
    /// A file that is made has this much space.
    space_bytes_max: Mutex<Option<u64>>,
}

impl SimShelf {
    /// A file.
    pub fn file(&self, name: &str) -> Option<Arc<SimDevice>> {
        self.files.lock().get(name).cloned()
    }

    /// New files can have no more than this.
    pub fn set_space_bytes_max(&self, bytes: Option<u64>) {
        *self.space_bytes_max.lock() = bytes;
    }

    /// Bytes of all files that have space.
    pub fn space_bytes(&self) -> u64 {
        let files = self.files.lock();
        files.values().map(|file| file.space_bytes()).sum()
    }
}

impl Shelf for SimShelf {
    fn names(&self) -> Result<Vec<String>> {
        Ok(self.files.lock().keys().cloned().collect())
    }

    fn open(&self, name: &str, access: Access) -> Result<Arc<dyn Device>> {
        let mut files = self.files.lock();
        if let Some(file) = files.get(name) {
            return Ok(Arc::clone(file) as Arc<dyn Device>);
        }
        if access == Access::Read {
            return Err(Error::new(ErrorKind::NotFound, name));
        }
        let file = Arc::new(SimDevice::new(SimOptions {
            record: false,
            space_bytes_max: self.space_bytes_max.lock().unwrap_or(u64::MAX),
            ..SimOptions::default()
        }));
        files.insert(name.to_owned(), Arc::clone(&file));
        Ok(file as Arc<dyn Device>)
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let mut files = self.files.lock();
        match files.remove(from) {
            Some(file) => files.insert(to.to_owned(), file),
            None => return Err(Error::new(ErrorKind::NotFound, from)),
        };
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.files.lock().remove(name);
        Ok(())
    }
}

/// Tries `runs` chains of backups, each by its own seed from `seed` on. A failure does not end it.
pub fn many_backups(runs: u64, seed: u64) -> Counts {
    many("backups", runs, seed, backups)
}

/// Pairs by region.
type Pairs = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;

/// What is wrong.
type Outcome = std::result::Result<(), String>;

/// A chain of backups, by `seed`.
pub fn backups(seed: u64) -> Counts {
    judged(("backups", "chains of backups"), seed, run(seed))
}

/// An inner error is what is wrong, an outer one what store or backup said.
fn run(seed: u64) -> Result<Outcome> {
    let mut dice = Dice::new(seed);
    let shelf = SimShelf::default();
    let mut held = Held::open(Arc::new(SimDevice::from_image(
        Image::default(),
        sim_options(),
    )))?;
    let keep = 1 + dice.below(3) as u32;
    for number in 1..=BACKUPS {
        for _ in 0..dice.below(200) {
            held.step(&mut dice)?;
        }
        if dice.below(4) == 0 {
            held = held.reopened(dice.below(2) == 0)?;
        }
        let made = held.backup(&shelf, keep)?;
        if made != number as u32 {
            return Ok(Err(format!("backup {number} is number {made}")));
        }
        if let Err(what) = check(&shelf, &held.pairs)? {
            return Ok(Err(format!("backup {number} of {BACKUPS}: {what}")));
        }
    }
    Ok(Ok(()))
}

fn sim_options() -> SimOptions {
    SimOptions {
        record: false,
        ..SimOptions::default()
    }
}

/// The newest backup is whole, and a store of it has `pairs` and nothing wrong.
fn check(shelf: &SimShelf, pairs: &Pairs) -> Result<Outcome> {
    check_backup(shelf, None, &mut |_| Ok(()))?;
    let device = Arc::new(SimDevice::new(sim_options()));
    let volume = Arc::clone(&device) as Arc<dyn Device>;
    restore_backup(shelf, None, &volume, &mut |_| Ok(()))?;
    let engine = Engine::open(volume, options())?;
    let found = pairs_of(&engine)?;
    if found != *pairs {
        return Ok(Err(difference(&found, pairs)));
    }
    let report = engine.verify()?;
    match report.problems.first() {
        None => Ok(Ok(())),
        Some(problem) => Ok(Err(format!("the restored store: {problem}"))),
    }
}

fn difference(found: &Pairs, expected: &Pairs) -> String {
    for name in REGIONS {
        let (found, expected) = (found.get(name), expected.get(name));
        let (Some(found), Some(expected)) = (found, expected) else {
            if found.is_some() != expected.is_some() {
                return format!("region {name} is there: {}", found.is_some());
            }
            continue;
        };
        let keys = found.keys().chain(expected.keys());
        if let Some(key) = keys
            .into_iter()
            .find(|key| found.get(*key) != expected.get(*key))
        {
            let len = |pairs: &BTreeMap<Vec<u8>, Vec<u8>>| pairs.get(key).map(Vec::len);
            let (found, expected) = (len(found), len(expected));
            return format!("{name}, {key:?}: bytes {found:?}, not {expected:?}");
        }
    }
    "other regions".to_owned()
}

fn pairs_of(engine: &Engine) -> Result<Pairs> {
    let mut all = Pairs::new();
    for name in engine.region_names() {
        let region = engine.existing_region(&name)?;
        let bounds = (Bound::Unbounded, Bound::Unbounded);
        let mut scan = engine.scan(&region, engine.snapshot(), bounds);
        let mut pairs = BTreeMap::new();
        while let Some((key, value)) =
            scan.next_with(|key, value| (key.to_vec(), value.to_vec()))?
        {
            pairs.insert(key, value);
        }
        all.insert(name, pairs);
    }
    Ok(all)
}

/// A store, and what it must hold.
struct Held {
    device: Arc<SimDevice>,
    engine: Engine,
    pairs: Pairs,
}

impl Held {
    fn open(device: Arc<SimDevice>) -> Result<Self> {
        let engine = Engine::open(Arc::clone(&device) as Arc<dyn Device>, options())?;
        Ok(Self {
            device,
            engine,
            pairs: Pairs::new(),
        })
    }

    /// Ends the run and begins another; as a crash would if it `is_abandoned`, with all that was written.
    fn reopened(self, is_abandoned: bool) -> Result<Self> {
        self.engine.sync()?;
        match is_abandoned {
            true => self.engine.abandon()?,
            false => self.engine.close()?,
        }
        let image = self.device.image();
        let pairs = self.pairs;
        let held = Self::open(Arc::new(SimDevice::from_image(image, sim_options())))?;
        Ok(Self { pairs, ..held })
    }

    fn backup(&self, shelf: &SimShelf, keep: u32) -> Result<u32> {
        let options = BackupOptions {
            keep,
            ..BackupOptions::default()
        };
        let report = self.engine.backup(shelf, &options, &mut |_| Ok(()))?;
        Ok(report.number)
    }

    fn region(&mut self, dice: &mut Dice) -> Result<(String, Arc<RegionState>)> {
        let name = REGIONS[dice.below(REGIONS.len() as u64) as usize];
        self.pairs.entry(name.to_owned()).or_default();
        Ok((
            name.to_owned(),
            self.engine.region_with(name, Durability::Buffered)?,
        ))
    }

    fn step(&mut self, dice: &mut Dice) -> Result<()> {
        match dice.below(40) {
            0 => self.engine.checkpoint(),
            1 => self.engine.background(Work::Image),
            2 => self.engine.background(Work::Merge),
            3 => self.engine.background(Work::Collect),
            4 if dice.below(4) == 0 => self.engine.compact_all(&mut |_| ()),
            5 if dice.below(4) == 0 => {
                let (name, _) = self.region(dice)?;
                self.pairs.remove(&name);
                self.engine.drop_region(&name)
            }
            6 => self.delete_range(dice),
            7..10 => self.batch(dice),
            _ => self.write(dice, 1),
        }
    }

    fn batch(&mut self, dice: &mut Dice) -> Result<()> {
        let operations = 2 + dice.below(12);
        self.write(dice, operations)
    }

    fn write(&mut self, dice: &mut Dice, operations: u64) -> Result<()> {
        let (name, region) = self.region(dice)?;
        let changes: Vec<_> = (0..operations)
            .map(|_| {
                let key = dice.below(KEYS).to_be_bytes().to_vec();
                let len = match dice.below(8) {
                    0 => return (key, None),
                    1..4 => dice.below(40),
                    4..7 => 300 + dice.below(3000),
                    _ => dice.below(150_000),
                };
                let fill = dice.below(256) as u8;
                (key, Some(vec![fill; len as usize]))
            })
            .collect();
        let operations: Vec<_> = changes
            .iter()
            .map(|(key, value)| Operation {
                region: &region,
                key,
                value: value.as_deref(),
                is_range: false,
                terms: Terms::default(),
            })
            .collect();
        self.engine.write(&operations, Durability::Buffered)?;
        let pairs = self.pairs.entry(name).or_default();
        for (key, value) in changes {
            match value {
                Some(value) => pairs.insert(key, value),
                None => pairs.remove(&key),
            };
        }
        Ok(())
    }

    fn delete_range(&mut self, dice: &mut Dice) -> Result<()> {
        let (name, region) = self.region(dice)?;
        let first = dice.below(KEYS);
        let end = first + 1 + dice.below(40);
        let (first, end) = (first.to_be_bytes().to_vec(), end.to_be_bytes().to_vec());
        let bounds = (Bound::Included(first.clone()), Bound::Excluded(end.clone()));
        if let Some(range) = DeletedRange::of(bounds)? {
            let operation = range.operation(&region);
            self.engine.write(&[operation], Durability::Buffered)?;
        }
        let pairs = self.pairs.entry(name).or_default();
        pairs.retain(|key, _| *key < first || *key >= end);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
