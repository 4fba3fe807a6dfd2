//! Tests of the cache.
//!
//! - `behaviour`: one sentence each
//! - `model`: random operations against a map
//! - `recount`: everything the cache counts, counted again

mod behaviour;
mod model;
mod recount;

use super::cell::CellNo;
use super::cells::Cache;
use super::slab::SLAB_BYTES;

/// A cache with a limit of exactly `slabs` slabs.
fn cache_of_slabs(slabs: usize) -> Cache {
    Cache::new(bytes_of_slabs(slabs))
}

/// The limit of that cache.
fn bytes_of_slabs(slabs: usize) -> usize {
    size_of::<Cache>() + slabs * (SLAB_BYTES + PLACE_BYTES)
}

/// The fixed part for each slab of the limit.
const PLACE_BYTES: usize = 2904;

/// Bytes that tell the cell, the version and the place.
fn content(cell: u64, version: u64, bytes: usize) -> Vec<u8> {
    let word =
        |at: usize| (cell << 40 | version << 20 | at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..bytes / 8)
        .flat_map(|at| word(at).to_le_bytes())
        .collect()
}

/// The cached bytes of a cell.
fn cached(cache: &mut Cache, cell: u64) -> Option<Vec<u8>> {
    let found = cache.get(CellNo(cell))?;
    let mut bytes = Vec::new();
    found.copy_to(&mut bytes, 0..usize::MAX);
    assert_eq!(bytes.len(), found.len_bytes());
    Some(bytes)
}
