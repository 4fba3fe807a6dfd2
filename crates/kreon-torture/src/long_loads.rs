//! Loads of several segments, with writes and checkpoints beside them: until its tree is there, nothing but the load itself
//! keeps the log that it has written.
//!
//! The loads of scripts are short: whether one crosses the border of a segment is chance.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use kreon_base::{Result, SEGMENT_BYTES};
use kreon_device::Device;
use kreon_engine::{Durability, Engine, Operation, Pairs, RegionState, Terms};
use kreon_sim::{Dice, Image, Keep, SimDevice, SimOptions};

use crate::Counts;
use crate::seeds::judged;
use crate::settings::options_of_check;

/// Bytes of a load.
const LOAD_BYTES: u64 = 4 * SEGMENT_BYTES;

const VALUE_BYTES_MAX: u64 = 100 << 10;

type Content = BTreeMap<Vec<u8>, Vec<u8>>;

/// A load by `seed`, and what is left of it.
pub fn long_loads(seed: u64) -> Counts {
    judged(("long loads", "long loads"), seed, run(seed))
}

/// An inner error is what is wrong, an outer one what the store said.
fn run(seed: u64) -> Result<std::result::Result<(), String>> {
    let mut dice = Dice::new(seed);
    let first = Life::open(Image::default())?;
    let mut load = Load {
        life: &first,
        dice: &mut dice,
        given_bytes: 0,
        key: Vec::new(),
        value: Vec::new(),
        loaded: Content::new(),
        beside: Content::new(),
    };
    first.engine.ingest(&first.loaded, &mut load)?;
    let (loaded, beside) = (load.loaded, load.beside);
    first.engine.sync()?;
    if first.content(&first.loaded)? != loaded || first.content(&first.beside)? != beside {
        return Ok(Err("another content after the load".to_owned()));
    }
    let history = first.device.history();
    let mut crash = history.crash();
    while crash.advance() {}
    let image = crash.image(&mut Keep::SomeSectors { seed });
    drop(first);
    let second = Life::open(image)?;
    let is_same = second.content(&second.loaded)? == loaded
        && second.content(&second.beside)? == beside
        && second.engine.verify()?.is_clean();
    Ok(is_same
        .then_some(())
        .ok_or_else(|| "another content after a power cut".to_owned()))
}

/// The pairs of a load, and what is done beside them.
struct Load<'a> {
    life: &'a Life,
    dice: &'a mut Dice,
    given_bytes: u64,
    key: Vec<u8>,
    value: Vec<u8>,
    loaded: Content,
    beside: Content,
}

impl Load<'_> {
    fn next_value(&mut self) -> Vec<u8> {
        let len_bytes = 1 + self.dice.below(VALUE_BYTES_MAX);
        let word = self.dice.roll().to_le_bytes();
        word.into_iter().cycle().take(len_bytes as usize).collect()
    }

    fn write_beside(&mut self) -> Result<()> {
        let key = self.dice.below(20).to_be_bytes().to_vec();
        let value = self.next_value();
        let operation = Operation {
            region: &self.life.beside,
            key: &key,
            value: Some(&value),
            is_range: false,
            terms: Terms::default(),
        };
        self.life.engine.write(&[operation], Durability::Buffered)?;
        self.beside.insert(key, value);
        Ok(())
    }
}

impl Pairs for Load<'_> {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        if self.given_bytes >= LOAD_BYTES {
            return Ok(None);
        }
        if self.dice.below(4) == 0 {
            self.write_beside()?;
        }
        if self.dice.below(8) == 0 {
            self.life.engine.checkpoint()?;
        }
        self.key = (self.loaded.len() as u64).to_be_bytes().to_vec();
        self.value = self.next_value();
        self.given_bytes += self.value.len() as u64;
        self.loaded.insert(self.key.clone(), self.value.clone());
        Ok(Some((&self.key, &self.value)))
    }
}

/// A store that is open.
struct Life {
    device: Arc<SimDevice>,
    engine: Engine,
    loaded: Arc<RegionState>,
    beside: Arc<RegionState>,
}

impl Life {
    fn open(image: Image) -> Result<Self> {
        let device = Arc::new(SimDevice::from_image(image, SimOptions::default()));
        let engine = Engine::open(Arc::clone(&device) as Arc<dyn Device>, options_of_check())?;
        let loaded = engine.region("loaded")?;
        let beside = engine.region("beside")?;
        Ok(Self {
            device,
            engine,
            loaded,
            beside,
        })
    }

    fn content(&self, region: &Arc<RegionState>) -> Result<Content> {
        let bounds = (Bound::Unbounded, Bound::Unbounded);
        let snapshot = self.engine.snapshot();
        let mut scan = self.engine.scan(region, snapshot, bounds);
        let mut content = Content::new();
        while let Some(pair) = scan.next_with(|key, value| (key.to_vec(), value.to_vec()))? {
            content.extend([pair]);
        }
        Ok(content)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_load_of_several_segments_is_whole_whatever_is_written_beside_it() {
        for seed in 0..4 {
            let counts = super::long_loads(seed);
            assert_eq!(counts.failures, Vec::<String>::new());
        }
    }
}
