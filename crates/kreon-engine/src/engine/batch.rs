//! A run of pairs that a scan has fetched ahead: one allocation for all of them.

use std::collections::VecDeque;
use std::ops::Range;

/// Pairs in the order of the scan, their bytes one behind the other.
#[derive(Default)]
pub struct Batch {
    bytes: Vec<u8>,
    pairs: VecDeque<Pair>,
}

struct Pair {
    key: Range<usize>,
    value: Range<usize>,
}

impl Batch {
    /// Appends a pair: its key, then what `value` appends behind it.
    pub fn push<E>(
        &mut self,
        key: &[u8],
        value: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let middle = self.bytes.len();
        value(&mut self.bytes)?;
        self.pairs.push_back(Pair {
            key: start..middle,
            value: middle..self.bytes.len(),
        });
        Ok(())
    }

    /// Takes the first pair out and shows it.
    pub fn take_first<R>(&mut self, show: impl FnOnce(&[u8], &[u8]) -> R) -> Option<R> {
        let pair = self.pairs.pop_front()?;
        Some(show(&self.bytes[pair.key], &self.bytes[pair.value]))
    }

    /// Takes the last pair out and shows it.
    pub fn take_last<R>(&mut self, show: impl FnOnce(&[u8], &[u8]) -> R) -> Option<R> {
        let pair = self.pairs.pop_back()?;
        Some(show(&self.bytes[pair.key], &self.bytes[pair.value]))
    }

    /// Whether all pairs were taken.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Forgets all pairs, keeps the memory unless it is large.
    pub fn clear(&mut self) {
        const KEEP_BYTES_MAX: usize = 4 << 20;
        if self.bytes.capacity() > KEEP_BYTES_MAX {
            self.bytes = Vec::new();
        }
        self.bytes.clear();
        self.pairs.clear();
    }
}
