//! The primary of a group and one member that follows it: whatever a power cut leaves of the member, it opens, and has all
//! that the primary has told to be durable.
//!
//! The member gets every write of pages as it comes and the log as late as it may. Cuts hit it at the worst moment, when
//! the primary's device has flushed and the member has not: meanwhile more is written, and what the primary claims of its
//! log is part of that.

mod follower;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use kreon_base::{Incarnation, Result};
use kreon_device::Device;
use kreon_engine::{
    Background, Durability, Engine, LogMirror, Mirroring, Operation, Options, RegionState, Terms,
    Work,
};
use kreon_sim::{Dice, Image, SimDevice, SimOptions};

use self::follower::Follower;
use crate::Counts;
use crate::settings::options;

/// Rounds of writes in a run.
const ROUNDS: u64 = 7;

/// More than the log's buffers hold.
const BURST_BYTES: u64 = 9 << 20;

const KEYS: u64 = 60;

/// The bytes of a value before its filling: the number of the write.
const NUMBER_BYTES: usize = 8;

/// One primary and its member, by `seed`.
pub fn members(seed: u64) -> Counts {
    let mut counts = Counts::default();
    counts.count("members");
    match run(seed) {
        Ok(None) => {}
        Ok(Some(what)) => counts.fail(format!("members: {what} with seed {seed}")),
        Err(error) => counts.fail(format!("members: {error} with seed {seed}")),
    }
    counts
}

/// What is wrong, or what the store said.
fn run(seed: u64) -> Result<Option<String>> {
    let follower = Follower::new(seed);
    let mirroring = Mirroring {
        incarnation: Some(Incarnation(1)),
        log_device: Some(follower.primary_device()),
        log_mirror: Some(Arc::clone(&follower) as Arc<dyn LogMirror>),
    };
    let options = Options {
        mirroring,
        ..settings()
    };
    let engine = Arc::new(Engine::open(follower.device(), options)?);
    follower.attach(&engine);
    let outcome = std::thread::scope(|scope| {
        let relief = scope.spawn(|| follower.relieve());
        let outcome = {
            let _stops = Stops(&follower);
            Course::new(seed, &engine, &follower).and_then(|mut course| course.run())
        };
        match relief.join() {
            Ok(()) => outcome,
            Err(_) => Ok(()),
        }
    });
    let found = follower.failure();
    // A failure of the member fails the store, too.
    match found {
        None => outcome.map(|()| None),
        found => Ok(found),
    }
}

/// Ends the thread that relieves, also if this one dies.
struct Stops<'a>(&'a Follower);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

fn settings() -> Options {
    Options {
        memory_bytes: 16 << 20,
        l0_bytes: Some(1 << 20),
        log_buffer_bytes: Some(4 << 20),
        // Whoever writes in the member's worst moment must not wait for a spill.
        background: Background::Driven,
        ..options()
    }
}

/// What is done to the store.
struct Course<'a> {
    dice: Dice,
    engine: &'a Engine,
    follower: &'a Follower,
    region: Arc<RegionState>,
}

impl<'a> Course<'a> {
    fn new(seed: u64, engine: &'a Engine, follower: &'a Follower) -> Result<Self> {
        engine.region(BESIDE)?;
        Ok(Self {
            dice: Dice::new(seed ^ 0x6d65_6d62),
            engine,
            follower,
            region: engine.region(REGION)?,
        })
    }

    fn run(&mut self) -> Result<()> {
        for _ in 0..ROUNDS {
            let small = self.dice.below(80);
            for _ in 0..small {
                let bytes = self.dice.below(3000);
                self.put(bytes)?;
            }
            if self.dice.below(3) == 0 {
                let mut bytes = 0;
                while bytes < BURST_BYTES {
                    let value_bytes = 1000 + self.dice.below(120_000);
                    bytes += value_bytes;
                    self.put(value_bytes)?;
                }
            }
            match self.dice.below(6) {
                0 => self.engine.checkpoint()?,
                1 => self.engine.background(Work::Image)?,
                2 => self.engine.background(Work::Spill)?,
                _ => self.engine.sync()?,
            }
            // An image is durable, but not all of the log behind it.
            self.engine.sync()?;
            self.follower.told_durable();
        }
        Ok(())
    }

    fn put(&mut self, bytes: u64) -> Result<()> {
        let key = self.dice.below(KEYS);
        let value = self.follower.next_value(key, bytes as usize);
        write(self.engine, &self.region, key, &value)
    }
}

const REGION: &str = "r";

/// The region of writes that are not compared.
const BESIDE: &str = "beside";

fn write(engine: &Engine, region: &RegionState, key: u64, value: &[u8]) -> Result<()> {
    let operation = Operation {
        region,
        key: &key.to_be_bytes(),
        value: Some(value),
        is_range: false,
        terms: Terms::default(),
    };
    engine.write(&[operation], Durability::Buffered)
}

/// The writes of a run, in their order: the number of each is its place.
#[derive(Default)]
struct Writes {
    /// The key of each.
    keys: Vec<u64>,
}

impl Writes {
    /// The value of the next write, which tells its number.
    fn next(&mut self, key: u64, bytes: usize) -> Vec<u8> {
        let mut value = vec![key as u8; NUMBER_BYTES + bytes];
        let number = self.keys.len() as u64;
        let (front, _) = value.split_at_mut(NUMBER_BYTES);
        front.copy_from_slice(&number.to_be_bytes());
        self.keys.push(key);
        value
    }

    /// What every key has after the first `count` writes: the number of its last.
    fn after(&self, count: u64) -> BTreeMap<u64, u64> {
        let keys = self.keys.iter().copied();
        keys.zip(0..count).collect()
    }

    /// Opens the store on `image` and compares: it must have a prefix of the writes, with the first `durable` of them.
    fn check(&self, image: Image, durable: u64) -> std::result::Result<(), String> {
        let found = pairs(image).map_err(|error| format!("a member does not open: {error}"))?;
        let count = found.values().max().map_or(0, |last| last + 1);
        if count < durable {
            return Err(format!(
                "a member has {count} writes, and {durable} were told to be durable"
            ));
        }
        match found == self.after(count) {
            true => Ok(()),
            false => Err(format!("a member has no prefix of {count} writes")),
        }
    }
}

/// The number of the last write of every key of the store on `image`.
fn pairs(image: Image) -> Result<BTreeMap<u64, u64>> {
    let settings = SimOptions {
        record: false,
        ..SimOptions::default()
    };
    let device = Arc::new(SimDevice::from_image(image, settings));
    let engine = Engine::open(device as Arc<dyn Device>, self::settings())?;
    let Ok(region) = engine.existing_region(REGION) else {
        return Ok(BTreeMap::new());
    };
    let bounds = (Bound::Unbounded, Bound::Unbounded);
    let mut scan = engine.scan(&region, engine.snapshot(), bounds);
    let mut pairs = BTreeMap::new();
    let number = |bytes: &[u8]| {
        bytes
            .first_chunk()
            .map_or(u64::MAX, |bytes| u64::from_be_bytes(*bytes))
    };
    while let Some(pair) = scan.next_with(|key, value| (number(key), number(value)))? {
        pairs.extend([pair]);
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_member_has_what_was_told_to_be_durable_wherever_it_is_cut() {
        for seed in 0..2 {
            let counts = super::members(seed);
            assert_eq!(counts.failures, Vec::<String>::new());
        }
    }
}
