//! Pairs that a scan has read ahead: keys and short values in one allocation, and the places of long values.

use std::collections::VecDeque;
use std::ops::Range;

use kreon_base::LogOffset;

use super::scan_source::Located;

/// Pairs in the order of the scan.
#[derive(Default)]
pub struct Batch {
    /// Keys and inline values.
    bytes: Vec<u8>,
    pairs: VecDeque<Pair>,
}

/// A pair of a [`Batch`], which shows its bytes.
#[derive(Clone)]
pub struct Pair {
    key: Range<usize>,
    value: Place,
}

#[derive(Clone)]
enum Place {
    Inline(Range<usize>),
    Logged { offset: LogOffset, value_bytes: u32 },
}

/// Where the value of a pair is.
pub enum Found<'a> {
    /// Here.
    Inline(&'a [u8]),
    /// In the log; never `Inline` nor `Deleted`.
    Logged(Located),
}

impl Batch {
    /// Appends a pair, which must have a value.
    pub fn push(&mut self, key: &[u8], located: &Located) {
        let key = self.append(key);
        let value = match located {
            Located::Inline(value) => Place::Inline(self.append(value)),
            Located::Logged {
                offset,
                value_bytes,
            } => Place::Logged {
                offset: *offset,
                value_bytes: *value_bytes,
            },
            Located::Deleted => return,
        };
        self.pairs.push_back(Pair { key, value });
    }

    fn append(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    /// Takes the first pair out.
    pub fn pop_first(&mut self) -> Option<Pair> {
        self.pairs.pop_front()
    }

    /// Takes the last pair out.
    pub fn pop_last(&mut self) -> Option<Pair> {
        self.pairs.pop_back()
    }

    /// A copy of the last key.
    pub fn last_key(&self) -> Option<Vec<u8>> {
        self.pairs.back().map(|pair| self.key(pair).to_vec())
    }

    /// The pair `ahead` places behind the first.
    pub fn nth(&self, ahead: usize) -> Option<&Pair> {
        self.pairs.get(ahead)
    }

    /// The key of a pair of this batch.
    pub fn key(&self, pair: &Pair) -> &[u8] {
        self.bytes.get(pair.key.clone()).unwrap_or_default()
    }

    /// The value of a pair of this batch.
    pub fn value(&self, pair: &Pair) -> Found<'_> {
        match &pair.value {
            Place::Inline(range) => {
                Found::Inline(self.bytes.get(range.clone()).unwrap_or_default())
            }
            Place::Logged {
                offset,
                value_bytes,
            } => Found::Logged(Located::Logged {
                offset: *offset,
                value_bytes: *value_bytes,
            }),
        }
    }

    /// The places of the values in the log: where the record is, and the bytes of key and value.
    pub fn records(&self) -> impl Iterator<Item = (LogOffset, usize)> {
        self.pairs.iter().filter_map(Pair::record)
    }

    /// How many pairs there are.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether all pairs were taken.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Forgets all pairs, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.pairs.clear();
    }

    /// Gives memory back that is more than half of `room`, if it has no pairs.
    pub fn fit(&mut self, room_bytes: usize) {
        if self.pairs.is_empty() && self.memory_bytes() > room_bytes / 2 {
            *self = Self::default();
        }
    }

    /// The memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.pairs.capacity() * size_of::<Pair>()
    }
}

impl Pair {
    /// Where its record is, and the bytes of key and value; `None` for an inline value.
    pub fn record(&self) -> Option<(LogOffset, usize)> {
        match self.value {
            Place::Logged {
                offset,
                value_bytes,
            } => Some((offset, self.key.len() + value_bytes as usize)),
            Place::Inline(_) => None,
        }
    }
}
