//! Scans over stretches of deleted keys, which a store notes as gaps, beside puts into these stretches.
//!
//! One thread, few keys, a map beside the store: runs of neighbouring keys are deleted, scans pass them often enough that
//! gaps come about, and puts go into their midst. A scan that still seeks past a gap misses the pair.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use kreon_base::Result;
use kreon_device::Device;
use kreon_engine::{Durability, Engine, OpenSnapshot, Operation, RegionState, Terms};
use kreon_sim::{Dice, Image, SimDevice, SimOptions};

use crate::Counts;
use crate::seeds::judged;
use crate::settings::options;

const KEYS: u64 = 600;
const STEPS: u64 = 300;

/// Neighbours that are deleted together: shorter and longer ones than a scan notes.
const RUN_KEYS: [u64; 2] = [4, 150];

/// Pairs that a scan takes at the most: so that it ends behind a run.
const SCANNED: usize = 6;

/// What a scan shows that is wrong.
type Outcome = std::result::Result<(), String>;

/// Deleted runs, scans and puts, by `seed`.
pub fn gaps(seed: u64) -> Counts {
    judged(("gaps", "runs of deleted keys"), seed, run(seed))
}

/// An inner error is what is wrong, an outer one what the store said.
fn run(seed: u64) -> Result<Outcome> {
    let mut dice = Dice::new(seed);
    let mut held = Held::open()?;
    for key in 0..KEYS {
        held.write(key, Some(key))?;
    }
    for step in 0..STEPS {
        if let Err(what) = held.step(&mut dice)? {
            return Ok(Err(format!("step {step}: {what}")));
        }
    }
    held.scan(0, KEYS as usize)
}

/// A store, what it must hold, and an older state that a snapshot sees.
struct Held {
    engine: Engine,
    region: Arc<RegionState>,
    pairs: BTreeMap<u64, u64>,
    old: Option<(Arc<OpenSnapshot>, BTreeMap<u64, u64>)>,
    /// The last run that was deleted.
    run: (u64, u64),
}

impl Held {
    fn open() -> Result<Self> {
        let device = SimDevice::from_image(Image::default(), SimOptions::default());
        let engine = Engine::open(Arc::new(device) as Arc<dyn Device>, options())?;
        let region = engine.region("r")?;
        Ok(Self {
            engine,
            region,
            pairs: BTreeMap::new(),
            old: None,
            run: (0, 1),
        })
    }

    fn step(&mut self, dice: &mut Dice) -> Result<Outcome> {
        match dice.below(16) {
            0..2 => self.delete_run(dice)?,
            2..6 => {
                let (first, keys) = self.run;
                let key = match dice.below(3) {
                    0 => dice.below(KEYS),
                    _ => first + dice.below(keys),
                };
                self.write(key, Some(dice.below(1 << 40)))?;
            }
            6 => self.write(dice.below(KEYS), None)?,
            7 => self.old = Some((self.engine.snapshot(), self.pairs.clone())),
            8 => self.old = None,
            9 if dice.below(4) == 0 => self.engine.checkpoint()?,
            10 => return self.scan_old(),
            // Before the last run, so that the scan passes it.
            _ => return self.scan(self.run.0.saturating_sub(dice.below(4)), SCANNED),
        }
        Ok(Ok(()))
    }

    fn delete_run(&mut self, dice: &mut Dice) -> Result<()> {
        let keys = RUN_KEYS[0] + dice.below(RUN_KEYS[1] - RUN_KEYS[0]);
        let first = dice.below(KEYS - keys);
        for key in first..first + keys {
            self.write(key, None)?;
        }
        self.run = (first, keys);
        Ok(())
    }

    fn write(&mut self, key: u64, value: Option<u64>) -> Result<()> {
        let bytes = value.map(u64::to_be_bytes);
        let operation = Operation {
            region: &self.region,
            key: &key.to_be_bytes(),
            value: bytes.as_ref().map(|bytes| &bytes[..]),
            is_range: false,
            terms: Terms::default(),
        };
        self.engine.write(&[operation], Durability::Buffered)?;
        match value {
            Some(value) => self.pairs.insert(key, value),
            None => self.pairs.remove(&key),
        };
        Ok(())
    }

    fn scan(&self, first: u64, most: usize) -> Result<Outcome> {
        self.compare(self.engine.snapshot(), &self.pairs, first, most)
    }

    fn scan_old(&self) -> Result<Outcome> {
        match &self.old {
            Some((snapshot, pairs)) => self.compare(Arc::clone(snapshot), pairs, 0, KEYS as usize),
            None => Ok(Ok(())),
        }
    }

    fn compare(
        &self,
        snapshot: Arc<OpenSnapshot>,
        pairs: &BTreeMap<u64, u64>,
        first: u64,
        most: usize,
    ) -> Result<Outcome> {
        let from = first.to_be_bytes().to_vec();
        let bounds = (Bound::Included(from), Bound::Unbounded);
        let mut scan = self.engine.scan(&self.region, snapshot, bounds);
        for (key, value) in pairs.range(first..).take(most) {
            let found = scan.next_with(|key, value| (key.to_vec(), value.to_vec()))?;
            let expected = (key.to_be_bytes().to_vec(), value.to_be_bytes().to_vec());
            if found.as_ref() != Some(&expected) {
                return Ok(Err(format!(
                    "a scan from {first} on shows {found:?} in place of {key}"
                )));
            }
        }
        let is_whole = pairs.range(first..).count() <= most;
        match is_whole && scan.next_with(|_, _| ())?.is_some() {
            true => Ok(Err("a scan shows a key that was deleted".to_owned())),
            false => Ok(Ok(())),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn puts_into_stretches_of_deleted_keys_are_seen_by_scans() {
        for seed in 0..8 {
            let counts = super::gaps(seed);
            assert_eq!(counts.failures, Vec::<String>::new());
        }
    }
}
