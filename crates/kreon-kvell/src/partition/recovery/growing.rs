//! The index of a partition as it grows.

use std::mem;

use crate::index::{Index, IndexBuilder, Location};

/// Entries come in order; where there are several passes, in the order of each.
pub enum GrowingIndex {
    /// In the first pass: built from the left.
    Built(IndexBuilder),
    /// In the others: added to what is there.
    Added(Index),
}

impl GrowingIndex {
    /// Of the first `key_bytes_max` bytes of each key.
    pub fn new(key_bytes_max: usize) -> Self {
        Self::Built(IndexBuilder::new(key_bytes_max))
    }

    /// N: how many bytes of a key stand in the index at most.
    pub fn key_bytes_max(&self) -> usize {
        match self {
            Self::Built(builder) => builder.key_bytes_max(),
            Self::Added(index) => index.key_bytes_max(),
        }
    }

    /// Adds an entry: the first N bytes of a key, whether these are all, the place of the item. `false`, and nothing is
    /// changed, if it has more bytes, is there already, or, in the first pass, does not belong behind all others.
    pub fn push(&mut self, bytes: &[u8], is_whole: bool, at: Location) -> bool {
        match self {
            Self::Built(builder) => builder.push(bytes, is_whole, at),
            Self::Added(index) => index.insert_entry(bytes, is_whole, at),
        }
    }

    /// The first pass is over; more entries may come, between those that are there.
    pub fn begin_again(&mut self) {
        let index = mem::replace(self, Self::new(1)).finish();
        *self = Self::Added(index);
    }

    /// Memory in bytes.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Self::Built(builder) => builder.memory_bytes(),
            Self::Added(index) => index.memory_bytes(),
        }
    }

    /// The index.
    pub fn finish(self) -> Index {
        match self {
            Self::Built(builder) => builder.finish(),
            Self::Added(index) => index,
        }
    }
}
