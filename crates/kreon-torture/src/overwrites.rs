//! Values that are overwritten until garbage collection has moved most of them, and scanned until they were laid
//! together, with openings after a crash in between: every key has its last value, whatever was moved where, and whatever
//! stays in memory of the log. A write of the log that fails changes no answer; reads that bring wrong bits are found out.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use kreon_base::{Error, ErrorKind, Result};
use kreon_device::Device;
use kreon_engine::{Background, Durability, Engine, Operation, Options, RegionState, Terms, Work};
use kreon_sim::{Call, Dice, Effect, Fault, Image, SimDevice, SimOptions};

use crate::Counts;
use crate::settings::with_idle_time;

const KEYS: u64 = 4000;
const ROUNDS: u64 = 12;
const WRITES: u64 = 2500;

/// Writes before one of the log fails: it takes several to bring them to the device.
const WRITES_BEFORE_FAILURE: u64 = 600;

/// Pairs of a scan.
const PAIRS: usize = 150;

/// Runs in which values were laid together in idle time.
const IN_IDLE_TIME: &str = "runs with copies in idle time";

/// Some rounds of writes, collections, checkpoints and crashes, by `seed`.
pub fn overwrites(seed: u64) -> Counts {
    let mut counts = Counts::default();
    counts.count("overwrites");
    match run(seed) {
        // With more memory scans find all they want there. Where scans had everything laid together, idle time has nothing.
        Ok([collected, reorganised, idle])
            if collected > 0 && (reorganised > 0 || !has_little_memory(seed)) =>
        {
            if idle > 0 {
                counts.note(IN_IDLE_TIME);
            }
        }
        Ok(moved) => counts.fail(format!(
            "overwrites: {moved:?} records were moved with seed {seed}"
        )),
        Err(error) => counts.fail(format!("overwrites: {error} with seed {seed}")),
    }
    counts
}

fn has_little_memory(seed: u64) -> bool {
    seed % 4 == 3
}

/// So little memory that scans read from the device; or a little more, so that pages of the log come and go; or so much that
/// segments of the log are used again while several of their earlier uses are in memory.
fn options(seed: u64) -> Options {
    const MIB: usize = 1 << 20;
    let (memory_bytes, log_buffer_bytes) = match seed % 8 {
        _ if has_little_memory(seed) => (8 * MIB, None),
        1 | 5 => (16 * MIB, None),
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
        ..with_idle_time(Options::default())
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

/// Records that were moved by garbage collection, for scans, and in idle time.
fn run(seed: u64) -> Result<[u64; 3]> {
    let mut dice = Dice::new(seed);
    let mut store = Store::open(options(seed), Image::default(), BTreeMap::new())?;
    let mut moved = [0; 3];
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
        store.check(&mut dice)?;
        let stats = store.engine.stats();
        moved[0] += stats.collection.records_moved;
        moved[1] += stats.reorganisation.records_moved;
        moved[2] += stats.reorganisation.idle.records_moved;
        if dice.below(3) == 0 {
            store.engine.sync()?;
            let (image, model) = (store.device.image(), store.model.clone());
            store.fail_a_write(&mut dice)?;
            store = Store::open(store.options.clone(), image, model)?;
            store.check(&mut dice)?;
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
            terms: Terms::default(),
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
        match dice.below(6) {
            3 | 4 => self.engine.background(Work::Reorganise),
            5 => self.engine.background(Work::LayTogether),
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

    fn check(&self, dice: &mut Dice) -> Result<()> {
        self.get_all(|_| false)?;
        if let Some(problem) = self.engine.verify()?.problems.into_iter().next() {
            return Err(Error::invalid(problem));
        }
        self.read_wrong_bits(dice)
    }

    /// Gets every key. Its value is right, or it is excused that the store tells none.
    fn get_all(&self, is_excused: impl Fn(&Error) -> bool) -> Result<()> {
        for key in 0..KEYS {
            let name = key.to_be_bytes();
            match self.engine.get(&self.region, &name, None, <[u8]>::to_vec) {
                Ok(found) if found.as_ref() == self.model.get(&key) => {}
                Ok(_) => return Err(Error::invalid(format!("key {key} has another value"))),
                Err(error) if is_excused(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Gets while each read of the device brings a wrong bit, and once more when that is over. The verification before has
    /// made room in memory: what was known to be good has left it.
    fn read_wrong_bits(&self, dice: &mut Dice) -> Result<()> {
        let bit = dice.roll();
        let flipped = Fault::nth(1, Call::Read, Effect::FlippedBit { bit });
        self.device.inject(flipped.for_ever());
        let outcome = self.get_all(|error| error.kind() == ErrorKind::Corruption);
        self.device.clear_faults();
        outcome?;
        self.get_all(|_| false)
    }

    /// Has a write of the log fail in the midst of what is buffered: all of that is read on. Nothing can be written then.
    fn fail_a_write(&mut self, dice: &mut Dice) -> Result<()> {
        for number in 0..WRITES_BEFORE_FAILURE {
            self.write(dice, ROUNDS * WRITES + number)?;
        }
        self.device.inject(Fault::nth(2, Call::Write, Effect::Io));
        // Unless a spill came last, which writes the log, too.
        let is_poisoned = self.engine.background(Work::WriteOut).is_err();
        self.device.clear_faults();
        self.get_all(|_| false)?;
        match is_poisoned && self.engine.sync().is_ok() {
            true => Err(Error::invalid("a failed write is forgotten")),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn overwritten_keys_have_their_last_values() {
        let mut in_idle_time = 0;
        for seed in [1, 3, 2] {
            let counts = super::overwrites(seed);
            assert_eq!(counts.failures, Vec::<String>::new());
            in_idle_time += counts.beside.get(super::IN_IDLE_TIME).copied().unwrap_or(0);
        }
        assert!(in_idle_time > 1, "{in_idle_time}");
    }
}
