//! What stands behind a torn place of the log never comes back, also where the next run writes up to the very border
//! of one of its records.
//!
//! All records take the same power of two of bytes, so that each of a later run ends where one of the run before does;
//! and both runs write more at once than has zeroes written behind it, so that what is left of the first run stays.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use kreon_base::Result;
use kreon_device::Device;
use kreon_engine::{Durability, Engine, Operation, RegionState, Terms, Work};
use kreon_format::{FRAGMENT_HEADER_BYTES, fragment_bytes};
use kreon_sim::{Dice, Image, Keep, SimDevice, SimOptions};

use crate::Counts;
use crate::seeds::judged;
use crate::settings::options_of_check;

/// Bytes of a record in the log.
const RECORD_BYTES: [usize; 5] = [32, 64, 128, 256, 512];

/// The tail that is torn, and what the next run writes in its place.
const TORN_BYTES: [u64; 2] = [48 << 10, 160 << 10];
const AGAIN_BYTES: [u64; 2] = [20 << 10, 40 << 10];

type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

/// A torn tail and its end, by `seed`.
pub fn torn_tails(seed: u64) -> Counts {
    judged(("torn tails", "torn tails"), seed, run(seed))
}

/// An inner error is what is wrong, an outer one what the store said.
fn run(seed: u64) -> Result<std::result::Result<(), String>> {
    let mut dice = Dice::new(seed);
    let record_bytes = RECORD_BYTES[dice.below(RECORD_BYTES.len() as u64) as usize];
    let mut writer = Writer {
        record_bytes,
        number: 0,
    };
    let first = Life::open(Image::default())?;
    let mut durable = Pairs::new();
    for _ in 0..1 + dice.below(20) {
        durable.extend([writer.write(&first)?]);
    }
    first.engine.sync()?;
    let mut torn = Vec::new();
    for _ in 0..between(&mut dice, TORN_BYTES) / record_bytes as u64 {
        torn.push(writer.write(&first)?);
    }
    first.engine.background(Work::WriteOut)?;
    let crash = first.device.history();
    let image = crash.crash().image(&mut Keep::SomeSectors { seed });
    drop(first);

    let second = Life::open(image)?;
    let mut expected = second.pairs()?;
    let kept = expected.len().saturating_sub(durable.len());
    durable.extend(torn.into_iter().take(kept));
    if expected != durable {
        return Ok(Err("no prefix is left of the first run".to_owned()));
    }
    for _ in 0..between(&mut dice, AGAIN_BYTES) / record_bytes as u64 {
        expected.extend([writer.write(&second)?]);
    }
    match dice.below(2) {
        0 => second.engine.sync()?,
        _ => second.engine.background(Work::WriteOut)?,
    }
    let image = second.device.image();
    drop(second);

    let third = Life::open(image)?;
    let found = third.pairs()?;
    let back: Vec<_> = found
        .keys()
        .filter(|key| !expected.contains_key(*key))
        .collect();
    if let Some(key) = back.first() {
        let (count, key) = (back.len(), key.escape_ascii());
        return Ok(Err(format!(
            "{count} lost writes are back, {key} is the first"
        )));
    }
    let is_same = found == expected && third.engine.verify()?.is_clean();
    Ok(is_same
        .then_some(())
        .ok_or_else(|| "a write of the second run is missing".to_owned()))
}

fn between(dice: &mut Dice, [least, most]: [u64; 2]) -> u64 {
    least + dice.below(most - least)
}

/// Writes pairs that nobody wrote before.
struct Writer {
    record_bytes: usize,
    number: u64,
}

impl Writer {
    fn write(&mut self, life: &Life) -> Result<(Vec<u8>, Vec<u8>)> {
        self.number += 1;
        let key = self.number.to_be_bytes().to_vec();
        let value = vec![self.number as u8; self.record_bytes - FRAGMENT_HEADER_BYTES - key.len()];
        debug_assert_eq!(fragment_bytes(key.len() + value.len()), self.record_bytes);
        let operation = Operation {
            region: &life.region,
            key: &key,
            value: Some(&value),
            is_range: false,
            terms: Terms::default(),
        };
        life.engine.write(&[operation], Durability::Buffered)?;
        Ok((key, value))
    }
}

/// A store that is open.
struct Life {
    device: Arc<SimDevice>,
    engine: Engine,
    region: Arc<RegionState>,
}

impl Life {
    fn open(image: Image) -> Result<Self> {
        let device = Arc::new(SimDevice::from_image(image, SimOptions::default()));
        let engine = Engine::open(Arc::clone(&device) as Arc<dyn Device>, options_of_check())?;
        let region = engine.region("r")?;
        Ok(Self {
            device,
            engine,
            region,
        })
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

#[cfg(test)]
mod tests {
    #[test]
    fn what_a_power_cut_took_stays_away_when_the_next_run_writes_up_to_it() {
        for seed in 0..12 {
            let counts = super::torn_tails(seed);
            assert_eq!(counts.failures, Vec::<String>::new());
        }
    }
}
