//! Values that are overwritten until garbage collection has moved most of them, and scanned until they were laid
//! together, with openings after a crash in between: every key has its last value, whatever was moved where.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use kreon_base::{Error, Result};
use kreon_device::Device;
use kreon_engine::{Background, Durability, Engine, Operation, Options, RegionState, Work};
use kreon_sim::{Dice, Image, SimDevice, SimOptions};

use crate::Counts;

const KEYS: u64 = 4000;
const ROUNDS: u64 = 12;
const WRITES: u64 = 2500;

/// Pairs of a scan.
const PAIRS: usize = 150;

/// Some rounds of writes, collections, checkpoints and crashes, by `seed`.
pub fn overwrites(seed: u64) -> Counts {
    let mut counts = Counts::default();
    counts.count("overwrites");
    match run(seed) {
        // With much memory scans find all they want there.
        Ok([collected, reorganised])
            if collected > 0 && (reorganised > 0 || has_much_memory(seed)) => {}
        Ok([collected, reorganised]) => counts.fail(format!(
            "overwrites: {collected} and {reorganised} records were moved with seed {seed}"
        )),
        Err(error) => counts.fail(format!("overwrites: {error} with seed {seed}")),
    }
    counts
}

fn has_much_memory(seed: u64) -> bool {
    seed.is_multiple_of(2)
}

/// So little memory that scans read from the device, or so much that segments of the log are used again while several
/// of their earlier uses are in memory.
fn options(seed: u64) -> Options {
    const MIB: usize = 1 << 20;
    let (memory_bytes, log_buffer_bytes) = match seed % 8 {
        _ if !has_much_memory(seed) => (8 * MIB, None),
        0 => (1024 * MIB, None),
        4 => (256 * MIB, None),
        _ => (64 * MIB, Some(32 * MIB)),
    };
    Options {
        memory_bytes,
        log_buffer_bytes,
        l0_bytes: Some(MIB),
        background: Background::Driven,
        store_id: Some(7),
        ..Options::default()
    }
}

/// A store and what it must hold.
struct Store {
    options: Options,
    device: Arc<SimDevice>,
    engine: Engine,
    region: Arc<RegionState>,
    model: BTreeMap<u64, Vec<u8>>,
}

/// Records that were moved by garbage collection, and for scans.
fn run(seed: u64) -> Result<[u64; 2]> {
    let mut dice = Dice::new(seed);
    let mut store = Store::open(options(seed), Image::default(), BTreeMap::new())?;
    let mut moved = [0; 2];
    for round in 0..ROUNDS {
        for step in 0..WRITES {
            store.write(&mut dice, round * WRITES + step)?;
            if dice.below(20) == 0 {
                store.scan(dice.below(KEYS))?;
            }
            if dice.below(400) == 0 {
                store.work(&mut dice)?;
            }
        }
        // The key that is written next has been moved, perhaps: both are in L0' then.
        store.engine.background(Work::Collect)?;
        store.engine.region(&format!("region {round}"))?;
        store.check()?;
        let stats = store.engine.stats();
        moved[0] += stats.collection.records_moved;
        moved[1] += stats.reorganisation.records_moved;
        if dice.below(3) == 0 {
            store.engine.sync()?;
            let image = store.device.image();
            let model = std::mem::take(&mut store.model);
            store = Store::open(store.options.clone(), image, model)?;
            store.check()?;
        }
    }
    Ok(moved)
}

impl Store {
    fn open(options: Options, image: Image, model: BTreeMap<u64, Vec<u8>>) -> Result<Self> {
        let settings = SimOptions {
            record: false,
            ..SimOptions::default()
        };
        let device = Arc::new(SimDevice::from_image(image, settings));
        let engine = Engine::open(Arc::clone(&device) as Arc<dyn Device>, options.clone())?;
        let region = engine.region("r")?;
        Ok(Self {
            options,
            device,
            engine,
            region,
            model,
        })
    }

    fn write(&mut self, dice: &mut Dice, number: u64) -> Result<()> {
        // Some keys are written much more often than others: what is not in the log's memory is scanned, too.
        let rank_max = dice.below(KEYS);
        let key = dice.below(1 + rank_max) * 1597 % KEYS;
        let is_deletion = dice.below(16) == 0;
        let mut value = number.to_le_bytes().to_vec();
        value.resize(200 + dice.below(2000) as usize, key as u8);
        let operation = Operation {
            region: &self.region,
            key: &key.to_be_bytes(),
            value: (!is_deletion).then_some(value.as_slice()),
            is_range: false,
        };
        if self.engine.is_spill_due() {
            self.engine.background(Work::Spill)?;
        }
        self.engine.write(&[operation], Durability::Buffered)?;
        match is_deletion {
            true => drop(self.model.remove(&key)),
            false => drop(self.model.insert(key, value)),
        }
        Ok(())
    }

    fn work(&self, dice: &mut Dice) -> Result<()> {
        match dice.below(5) {
            3 | 4 => self.engine.background(Work::Reorganise),
            0 => self.engine.background(Work::Collect),
            1 => self.engine.background(Work::Image),
            _ => self.engine.checkpoint(),
        }
    }

    fn scan(&self, from: u64) -> Result<()> {
        let bounds = (
            Bound::Included(from.to_be_bytes().to_vec()),
            Bound::Unbounded,
        );
        let mut scan = self
            .engine
            .scan(&self.region, self.engine.snapshot(), bounds);
        scan.limit(PAIRS);
        for (key, value) in self.model.range(from..).take(PAIRS) {
            let is_it = |found: &[u8], with: &[u8]| found == key.to_be_bytes() && with == value;
            if scan.next_with(is_it)? != Some(true) {
                return Err(Error::invalid(format!(
                    "a scan from {from} shows another {key}"
                )));
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        for key in 0..KEYS {
            let found = self
                .engine
                .get(&self.region, &key.to_be_bytes(), None, <[u8]>::to_vec)?;
            if found.as_ref() != self.model.get(&key) {
                return Err(Error::invalid(format!("key {key} has another value")));
            }
        }
        match self.engine.verify()?.problems.into_iter().next() {
            Some(problem) => Err(Error::corruption(problem)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn overwritten_keys_have_their_last_values() {
        for seed in [3, 2] {
            let counts = super::overwrites(seed);
            assert_eq!(counts.failures, Vec::<String>::new());
        }
    }
}
