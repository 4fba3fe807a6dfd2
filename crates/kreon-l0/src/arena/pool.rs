//! Chunks that spaces pass on to later spaces.
//!
//! The first access to a fresh page of 4 KiB is a page fault, which costs as much as several inserts. A chunk that an
//! earlier space has used costs none.

use std::sync::Arc;

#[cfg(loom)]
use kreon_base::sync::Mutex;
#[cfg(not(loom))]
use parking_lot::Mutex;

use super::chunk::{CHUNK_BYTES, Chunk};

/// The chunks of several spaces, in use and spare.
pub(crate) struct Pool {
    chunks: Mutex<Chunks>,
    /// Limit of chunks in use and spare ones together; returned chunks beyond it are freed.
    kept_max: usize,
}

struct Chunks {
    spare: Vec<Chunk>,
    in_use: usize,
}

impl Pool {
    /// An empty pool that keeps up to `bytes` of memory, rounded up to chunks.
    pub(crate) fn new(bytes: usize) -> Arc<Self> {
        let chunks = Chunks {
            spare: Vec::new(),
            in_use: 0,
        };
        Arc::new(Self {
            chunks: Mutex::new(chunks),
            kept_max: bytes.div_ceil(CHUNK_BYTES),
        })
    }

    /// A chunk with arbitrary content.
    pub(super) fn take(&self) -> Chunk {
        let mut chunks = self.chunks.lock();
        chunks.in_use += 1;
        let spare = chunks.spare.pop();
        drop(chunks);
        spare.unwrap_or_else(Chunk::new)
    }

    /// Takes back chunks from [`Self::take`].
    pub(super) fn give_back(&self, given: Vec<Chunk>) {
        let mut chunks = self.chunks.lock();
        chunks.in_use -= given.len();
        let room = self
            .kept_max
            .saturating_sub(chunks.in_use + chunks.spare.len());
        let mut given = given.into_iter();
        chunks.spare.extend(given.by_ref().take(room));
        drop(chunks);
        // The others are freed here, outside the lock.
        drop(given);
    }

    /// Numbers of chunks in use and of spare ones.
    #[cfg(test)]
    pub(super) fn counts(&self) -> (usize, usize) {
        let chunks = self.chunks.lock();
        (chunks.in_use, chunks.spare.len())
    }
}
