//! What a store holds, read through its public calls, in a form that is cheap to compare.

use std::collections::BTreeMap;
use std::ops::Bound;

use kreon_base::Result;
use kreon_engine::{Engine, OpenSnapshot, RegionState};
use std::sync::Arc;

use crate::own_options;

/// Length and hash of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest {
    /// Length in bytes.
    pub len_bytes: u32,
    /// Hash of the bytes.
    pub hash: u64,
}

impl Digest {
    /// The digest of `value`.
    pub fn of(value: &[u8]) -> Self {
        Self {
            len_bytes: value.len() as u32,
            hash: hash(0, value),
        }
    }
}

/// The pairs of one region.
pub type Pairs = BTreeMap<Vec<u8>, Digest>;

/// All regions by name.
pub type Content = BTreeMap<String, Pairs>;

/// What a pair adds to the sum over its region: sums of equal sets are equal, whatever the order.
pub fn weight(key: &[u8], value: Digest) -> u64 {
    mix(hash(1, key) ^ mix(value.hash ^ u64::from(value.len_bytes)))
}

/// The sum over a region.
pub fn sum(pairs: &Pairs) -> u64 {
    pairs
        .iter()
        .fold(0, |sum, (key, value)| sum.wrapping_add(weight(key, *value)))
}

/// Names and sums of all regions: what two contents share only if they are equal.
pub fn sums(content: &Content) -> Vec<(String, u64)> {
    let regions = content.iter();
    regions
        .map(|(name, pairs)| (name.clone(), sum(pairs)))
        .collect()
}

fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

fn hash(seed: u64, bytes: &[u8]) -> u64 {
    // Four independent chains, so that the multiplications overlap.
    let mut lanes = [seed, 1, 2, bytes.len() as u64];
    let (blocks, rest) = bytes.as_chunks::<32>();
    for block in blocks {
        for (lane, word) in lanes.iter_mut().zip(block.as_chunks::<8>().0) {
            *lane = (*lane ^ u64::from_le_bytes(*word)).wrapping_mul(0x9fb2_1c65_1e98_df25);
            *lane ^= *lane >> 32;
        }
    }
    for part in rest.chunks(8) {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        lanes[0] = mix(lanes[0] ^ u64::from_le_bytes(word));
    }
    lanes.iter().fold(0, |sum, lane| mix(sum ^ *lane))
}

/// Reads everything with scans.
pub fn read(engine: &Engine) -> Result<Content> {
    read_at(engine, &engine.snapshot())
}

/// Reads everything that `snapshot` sees in the regions that exist.
pub fn read_at(engine: &Engine, snapshot: &Arc<OpenSnapshot>) -> Result<Content> {
    let mut content = Content::new();
    for name in engine.region_names() {
        let region = engine.existing_region(&name)?;
        own_options::check(&region)?;
        content.insert(name, read_region(engine, &region, snapshot)?);
    }
    Ok(content)
}

fn read_region(
    engine: &Engine,
    region: &Arc<RegionState>,
    snapshot: &Arc<OpenSnapshot>,
) -> Result<Pairs> {
    let bounds = (Bound::Unbounded, Bound::Unbounded);
    let mut scan = engine.scan(region, Arc::clone(snapshot), bounds);
    let mut pairs = Pairs::new();
    while let Some((key, value)) = scan.next_with(|key, value| (key.to_vec(), Digest::of(value)))? {
        pairs.insert(key, value);
    }
    Ok(pairs)
}

/// Contents over this many bytes are read by gets or backward, not both.
const READ_TWICE_BYTES_MAX: u64 = 1 << 20;

/// Compares what gets and a backward scan say with `content`; for a long content, one of the two, as its
/// bytes have it.
///
/// # Errors
/// The outer one: of reading. The inner one: what differs.
pub fn cross_check(engine: &Engine, content: &Content) -> Result<Result<(), String>> {
    let values = content.values().flat_map(|pairs| pairs.values());
    let is_long = values
        .clone()
        .map(|value| u64::from(value.len_bytes))
        .sum::<u64>()
        > READ_TWICE_BYTES_MAX;
    let is_even = values.fold(0, |all, value| all ^ value.hash) & 1 == 0;
    for (name, pairs) in content {
        let region = engine.existing_region(name)?;
        let mut outcome = Ok(());
        if !is_long || is_even {
            outcome = gets(engine, &region, pairs)?;
        }
        if outcome.is_ok() && !(is_long && is_even) {
            outcome = backward(engine, &region, pairs)?;
        }
        if let Err(what) = outcome {
            return Ok(Err(format!("region {name}: {what}")));
        }
    }
    Ok(Ok(()))
}

fn gets(engine: &Engine, region: &RegionState, pairs: &Pairs) -> Result<Result<(), String>> {
    for (key, value) in pairs {
        let got = engine.get(region, key, None, Digest::of)?;
        if got != Some(*value) {
            let key = brief(key);
            return Ok(Err(format!(
                "get of {key:?} says {got:?}, a scan {value:?}"
            )));
        }
    }
    Ok(Ok(()))
}

fn backward(
    engine: &Engine,
    region: &Arc<RegionState>,
    pairs: &Pairs,
) -> Result<Result<(), String>> {
    let bounds = (Bound::Unbounded, Bound::Unbounded);
    let mut scan = engine.scan(region, engine.snapshot(), bounds);
    let mut expected = pairs.iter().rev();
    loop {
        let found = scan.next_back_with(|key, value| (key.to_vec(), Digest::of(value)))?;
        let expected = expected.next().map(|(key, value)| (key.clone(), *value));
        if found != expected {
            return Ok(Err(format!(
                "a backward scan shows {found:?}, a forward one {expected:?}"
            )));
        }
        if found.is_none() {
            return Ok(Ok(()));
        }
    }
}

/// How `found` differs from `expected`, in a few lines.
pub fn difference(expected: &Content, found: &Content) -> String {
    let mut lines = Vec::new();
    for name in expected.keys().filter(|name| !found.contains_key(*name)) {
        lines.push(format!("region {name} is missing"));
    }
    for (name, pairs) in found {
        let Some(wanted) = expected.get(name) else {
            lines.push(format!("region {name} should not be there"));
            continue;
        };
        for (key, value) in wanted {
            if pairs.get(key) != Some(value) {
                let got = pairs.get(key);
                lines.push(format!(
                    "{name}/{}: expected {value:?}, found {got:?}",
                    brief(key)
                ));
            }
        }
        for (key, value) in pairs.iter().filter(|(key, _)| !wanted.contains_key(*key)) {
            lines.push(format!(
                "{name}/{}: expected nothing, found {value:?}",
                brief(key)
            ));
        }
    }
    let count = lines.len();
    lines.truncate(6);
    format!("{count} differences: {}", lines.join("; "))
}

fn brief(key: &[u8]) -> String {
    let shown = key.get(..24).unwrap_or(key);
    format!("{}({} bytes)", shown.escape_ascii(), key.len())
}
