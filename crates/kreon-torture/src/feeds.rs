//! A change feed shows what no power cut takes back, all of it, and each unit once: a map that follows it over power cuts is
//! the store.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use kreon_base::{ErrorKind, Result};
use kreon_device::Device;
use kreon_engine::{
    ChangeUnit, Changed, DeletedRange, Durability, Engine, Operation, Options, Position,
    RegionState, Terms, Work,
};
use kreon_sim::{Dice, Image, Keep, SimDevice, SimOptions};

use crate::Counts;
use crate::seeds::{judged, many};
use crate::settings::options;

/// Steps between two comparisons, and comparisons, each of which a power cut follows.
const STEPS: u64 = 60;
const CUTS: u64 = 12;

/// Log that is kept: little, so that some followers fall behind, or all.
const KEPT_BYTES: [u64; 2] = [1 << 20, 1 << 30];

const KEYS: u64 = 60;

type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

/// Tries `runs` stores, each by its own seed from `seed` on. A failure does not end it.
pub fn many_feeds(runs: u64, seed: u64) -> Counts {
    many("feeds", runs, seed, feeds)
}

/// A store, its power cuts and its follower, by `seed`.
pub fn feeds(seed: u64) -> Counts {
    judged(("feeds", "feeds"), seed, run(seed))
}

/// An inner error is what is wrong, an outer one what the store said.
fn run(seed: u64) -> Result<std::result::Result<(), String>> {
    let mut dice = Dice::new(seed);
    let options = Options {
        changes_kept_bytes: KEPT_BYTES[dice.below(2) as usize],
        ..options()
    };
    let mut life = Life::open(Image::default(), &options)?;
    let mut follower = Follower {
        position: life.engine.changes_start()?,
        pairs: Pairs::new(),
    };
    for cut in 0..CUTS {
        for _ in 0..STEPS {
            step(&mut life, &mut follower, &mut dice)?;
        }
        let mut keep = match dice.below(4) {
            0 => Keep::Nothing,
            1 => Keep::All,
            2 => Keep::SomeWrites { seed: seed ^ cut },
            _ => Keep::SomeSectors { seed: seed ^ cut },
        };
        let image = life.device.history().crash().image(&mut keep);
        drop(life);
        let image = match dice.below(5) {
            0 => unfollowed(image, &mut dice)?,
            _ => image,
        };
        life = Life::open(image, &options)?;
        life.engine.sync()?;
        follower.follow(&life)?;
        let stored = life.pairs()?;
        if follower.pairs != stored {
            let (followed, stored) = (follower.pairs.len(), stored.len());
            return Ok(Err(format!(
                "after power cut {cut} the follower has other pairs, {followed}, than the store, {stored}"
            )));
        }
    }
    Ok(Ok(()))
}

/// What is left of `image` by a run that keeps no log, and may drop the region.
fn unfollowed(image: Image, dice: &mut Dice) -> Result<Image> {
    let life = Life::open(image, &options())?;
    for _ in 0..dice.below(20) {
        life.write(dice)?;
    }
    if dice.below(2) == 0 {
        life.engine.drop_region("r")?;
    }
    life.engine.sync()?;
    Ok(life.device.history().crash().image(&mut Keep::All))
}

fn step(life: &mut Life, follower: &mut Follower, dice: &mut Dice) -> Result<()> {
    match dice.below(80) {
        0..4 => life.engine.sync(),
        4..8 => life.engine.checkpoint(),
        8..12 => life.engine.background(Work::WriteOut),
        12..16 => life.engine.background(Work::Collect),
        16..28 => follower.follow(life),
        28 => life.begin_anew(),
        _ => life.write(dice),
    }
}

/// A store that is open.
struct Life {
    device: Arc<SimDevice>,
    engine: Engine,
    region: Arc<RegionState>,
}

impl Life {
    fn open(image: Image, options: &Options) -> Result<Self> {
        let device = Arc::new(SimDevice::from_image(image, SimOptions::default()));
        let engine = Engine::open(Arc::clone(&device) as Arc<dyn Device>, options.clone())?;
        let region = engine.region("r")?;
        Ok(Self {
            device,
            engine,
            region,
        })
    }

    /// Drops the region and makes it again.
    fn begin_anew(&mut self) -> Result<()> {
        self.engine.drop_region("r")?;
        self.region = self.engine.region("r")?;
        Ok(())
    }

    /// A unit of one to four changes.
    fn write(&self, dice: &mut Dice) -> Result<()> {
        let mut changes = Vec::new();
        for _ in 0..[1, 1, 2, 4][dice.below(4) as usize] {
            let (key, end) = (key_of(dice.below(KEYS)), key_of(dice.below(KEYS)));
            let len = [0, 9, 300, 9000, 200_000][dice.below(5) as usize];
            let value = (dice.below(5) > 0).then(|| vec![dice.below(256) as u8; len]);
            let bounds = (Bound::Included(key.clone()), Bound::Excluded(end));
            let range = DeletedRange::of(bounds)?.filter(|_| dice.below(15) == 0);
            changes.push((key, value, range));
        }
        let operations = changes.iter().map(|(key, value, range)| match range {
            Some(range) => range.operation(&self.region),
            None => Operation {
                region: &self.region,
                key,
                value: value.as_deref(),
                is_range: false,
                terms: Terms::default(),
            },
        });
        let durability = match dice.below(6) {
            0 => Durability::Sync,
            _ => Durability::Buffered,
        };
        self.engine
            .write(&operations.collect::<Vec<_>>(), durability)
    }

    fn pairs(&self) -> Result<Pairs> {
        let bounds = (Bound::Unbounded, Bound::Unbounded);
        let snapshot = self.engine.snapshot();
        let mut scan = self.engine.scan(&self.region, snapshot, bounds);
        let mut pairs = Pairs::new();
        while let Some(pair) = scan.next_with(|key, value| (key.to_vec(), value.to_vec()))? {
            pairs.extend([pair]);
        }
        Ok(pairs)
    }
}

fn key_of(number: u64) -> Vec<u8> {
    format!("key{number:03}").into_bytes()
}

/// What follows the store.
struct Follower {
    position: Position,
    pairs: Pairs,
}

impl Follower {
    /// Applies what there is. One that fell behind begins anew.
    fn follow(&mut self, life: &Life) -> Result<()> {
        let changes = match life.engine.changes(self.position) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.position = life.engine.changes_end()?;
                self.pairs = life.pairs()?;
                // The copy has buffered writes, too, which a power cut may take.
                return life.engine.sync();
            }
            changes => changes,
        };
        let mut changes = changes?;
        while let Some(unit) = changes.next_unit()? {
            self.apply(unit);
        }
        self.position = changes.position();
        Ok(())
    }

    fn apply(&mut self, unit: ChangeUnit) {
        for change in unit.changes {
            match change.what {
                Changed::Put { key, value, .. } => _ = self.pairs.insert(key, value),
                Changed::Delete { key } => _ = self.pairs.remove(&key),
                Changed::DeleteRange { start, end } => self
                    .pairs
                    .retain(|key, _| *key < start || end.as_ref().is_some_and(|end| key >= end)),
                // There is one region, which is made again at once.
                Changed::Dropped => self.pairs.clear(),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_map_that_follows_a_feed_over_power_cuts_is_the_store() {
        for seed in 0..6 {
            let counts = super::feeds(seed);
            assert_eq!(counts.failures, Vec::<String>::new());
        }
    }
}
