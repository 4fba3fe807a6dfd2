//! What a transaction has read and what therefore must not change.

use std::sync::Arc;

use crate::read::KeyBounds;
use crate::regions::RegionState;

/// Memory of a range beside its bounds, in bytes.
const RANGE_BYTES: usize = 96;
const KEY_BYTES: usize = 16;

/// Keys and ranges that must be as they are at the snapshot when the transaction commits.
#[derive(Default)]
pub struct Reads {
    regions: Vec<Arc<RegionState>>,
    keys: Vec<ReadKey>,
    /// The bytes of all keys.
    key_bytes: Vec<u8>,
    ranges: Vec<(usize, KeyBounds)>,
    range_bytes: usize,
}

/// A key, by its place in the bytes of all, which are fewer than 4 GiB.
struct ReadKey {
    region: u32,
    start: u32,
    len: u32,
    /// It is to be looked at whatever the isolation.
    is_for_update: bool,
}

/// A range that was read.
#[derive(Clone, Copy)]
pub struct RangePlace(usize);

impl Reads {
    /// The memory that they take, in bytes.
    pub fn bytes(&self) -> usize {
        self.keys.len() * KEY_BYTES + self.key_bytes.len() + self.range_bytes
    }

    /// The memory that a key takes, in bytes.
    pub fn bytes_of_key(key: &[u8]) -> usize {
        KEY_BYTES + key.len()
    }

    /// The memory that a range takes, in bytes.
    pub fn bytes_of_range(bounds: &KeyBounds) -> usize {
        RANGE_BYTES + bytes_of(bounds)
    }

    fn place(&mut self, region: &Arc<RegionState>) -> usize {
        let place = self.regions.iter().position(|known| known.id == region.id);
        place.unwrap_or_else(|| {
            self.regions.push(Arc::clone(region));
            self.regions.len() - 1
        })
    }

    /// Adds a key.
    pub fn add_key(&mut self, region: &Arc<RegionState>, key: &[u8], is_for_update: bool) {
        let region = self.place(region) as u32;
        let start = self.key_bytes.len() as u32;
        self.key_bytes.extend_from_slice(key);
        self.keys.push(ReadKey {
            region,
            start,
            len: key.len() as u32,
            is_for_update,
        });
    }

    /// Adds a range.
    pub fn add_range(&mut self, region: &Arc<RegionState>, bounds: KeyBounds) -> RangePlace {
        let region = self.place(region);
        self.range_bytes += RANGE_BYTES + bytes_of(&bounds);
        self.ranges.push((region, bounds));
        RangePlace(self.ranges.len() - 1)
    }

    /// Less of a range was read.
    pub fn set_range(&mut self, place: RangePlace, bounds: KeyBounds) {
        if let Some((_, range)) = self.ranges.get_mut(place.0) {
            self.range_bytes = self.range_bytes.saturating_sub(bytes_of(range));
            self.range_bytes += bytes_of(&bounds);
            *range = bounds;
        }
    }

    /// All keys, with whether they are to be looked at whatever the isolation.
    pub fn keys(&self) -> impl Iterator<Item = (&RegionState, &[u8], bool)> {
        self.keys.iter().filter_map(|key| {
            let region = self.regions.get(key.region as usize)?;
            let start = key.start as usize;
            let bytes = self.key_bytes.get(start..start + key.len as usize)?;
            Some((&**region, bytes, key.is_for_update))
        })
    }

    /// All ranges.
    pub fn ranges(&self) -> impl Iterator<Item = (&RegionState, &KeyBounds)> {
        self.ranges.iter().filter_map(|(region, bounds)| {
            let region = self.regions.get(*region)?;
            Some((&**region, bounds))
        })
    }

    /// The regions of which something was read.
    pub fn regions(&self) -> impl Iterator<Item = &RegionState> {
        self.regions.iter().map(|region| &**region)
    }
}

fn bytes_of((start, end): &KeyBounds) -> usize {
    use std::ops::Bound::{Excluded, Included, Unbounded};
    let len = |bound: &std::ops::Bound<Vec<u8>>| match bound {
        Included(key) | Excluded(key) => key.len(),
        Unbounded => 0,
    };
    len(start) + len(end)
}
