//! Deletion of many keys, one by one.

use kreon_base::Result;

use super::options::Durability;
use super::region_key::key_within;
use super::region_state::RegionState;
use super::shared::Shared;
use crate::tree::{Cursor, Direction, ScanRange};

/// Keys that are looked for at a time: what a scan holds back meanwhile, the deletions could not free.
const KEYS: usize = 1024;

/// Deletes the keys of `range`, all of them of one region, that a scan finds. Nothing of it is durable.
///
/// # Errors
/// `Closed` if the region was dropped; those of a scan and of a deletion: some keys are deleted.
pub(super) fn sweep(shared: &Shared, region: &RegionState, mut range: ScanRange) -> Result<()> {
    loop {
        let keys = first_keys(shared, range.clone())?;
        for key in &keys {
            shared.write(region, key_within(key), None, Durability::Buffered)?;
        }
        match keys.into_iter().next_back() {
            None => return region.check(),
            // What is put at or below it from now on is left alone.
            Some(last) => range.low = [&last[..], &[0]].concat(),
        }
    }
}

fn first_keys(shared: &Shared, range: ScanRange) -> Result<Vec<Vec<u8>>> {
    let mut cursor = Cursor::new(range, Direction::Forward);
    let mut keys = Vec::new();
    while keys.len() < KEYS {
        match shared.tree.next(&mut cursor, |key, _| key.to_vec())? {
            Some(key) => keys.push(key),
            None => break,
        }
    }
    Ok(keys)
}
