//! Pairs that a scan has read ahead: keys and short values in one allocation, and the places of long values.

use std::collections::VecDeque;

use kreon_base::{Attributes, Codec, LogOffset, Payload};

/// Pairs in the order of the scan.
#[derive(Default)]
pub struct Batch {
    /// Keys and inline values.
    bytes: Vec<u8>,
    pairs: VecDeque<Pair>,
    /// So many pairs are expected at the most.
    expected: usize,
    /// The key that was taken last from the front, and the one from the back.
    taken: [Option<Span>; 2],
}

/// Most pairs and bytes that get their memory before they come.
const ROOM_PAIRS: usize = 128;
const ROOM_BYTES: usize = 4096;

/// A pair of a [`Batch`], which shows its bytes.
#[derive(Clone)]
pub struct Pair {
    key: Span,
    value: Place,
}

/// A range of the bytes of a [`Batch`], which are fewer than 4 GiB.
#[derive(Clone, Copy)]
struct Span {
    start: u32,
    len: u32,
}

#[derive(Clone)]
enum Place {
    Inline {
        value: Span,
        attributes: Attributes,
    },
    Logged {
        offset: LogOffset,
        value_bytes: u32,
        attributes: Attributes,
    },
}

/// Where the value of a pair is.
pub enum Found<'a> {
    /// Here, packed so.
    Inline(&'a [u8], Codec),
    /// In the log.
    Logged {
        /// Its record.
        offset: LogOffset,
        /// Bytes behind the key there.
        value_bytes: u32,
        /// What is kept beside it.
        attributes: Attributes,
    },
}

impl Batch {
    /// So many pairs will come at the most.
    pub fn expect(&mut self, pairs: usize) {
        self.expected = pairs;
    }

    /// Appends a pair, which must have a value.
    #[inline]
    pub fn push(&mut self, key: &[u8], payload: Payload<'_>) {
        if self.bytes.capacity() == 0 {
            self.make_room(key.len());
        }
        let key = self.append(key);
        let value = match payload {
            Payload::Inline { value, attributes } => Place::Inline {
                value: self.append(value),
                attributes,
            },
            Payload::Logged {
                offset,
                value_bytes,
                attributes,
            } => Place::Logged {
                offset,
                value_bytes,
                attributes,
            },
            Payload::Tombstone { .. } | Payload::Erased { .. } => return,
        };
        self.pairs.push_back(Pair { key, value });
    }

    /// Takes memory for what is expected at once: to grow step by step costs a short scan as much as its pairs.
    #[cold]
    fn make_room(&mut self, key_bytes: usize) {
        let pairs = self.expected.min(ROOM_PAIRS);
        self.pairs.reserve(pairs);
        self.bytes.reserve((pairs * key_bytes).min(ROOM_BYTES));
    }

    fn append(&mut self, bytes: &[u8]) -> Span {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(bytes);
        let len = bytes.len() as u32;
        Span { start, len }
    }

    fn slice(&self, span: Span) -> &[u8] {
        let start = span.start as usize;
        let slice = self.bytes.get(start..start + span.len as usize);
        slice.unwrap_or_default()
    }

    /// Takes the first pair out.
    pub fn pop_first(&mut self) -> Option<Pair> {
        let pair = self.pairs.pop_front()?;
        self.taken[0] = Some(pair.key);
        Some(pair)
    }

    /// Takes the last pair out.
    pub fn pop_last(&mut self) -> Option<Pair> {
        let pair = self.pairs.pop_back()?;
        self.taken[1] = Some(pair.key);
        Some(pair)
    }

    /// Takes pairs out from the first on whose keys are to be dropped. Keys are in order, so that those come first.
    pub fn drop_while(&mut self, is_dropped: impl Fn(&[u8]) -> bool) {
        let dropped = self
            .pairs
            .partition_point(|pair| is_dropped(self.slice(pair.key)));
        if let Some(last) = self.pairs.drain(..dropped).next_back() {
            self.taken[0] = Some(last.key);
        }
    }

    /// The key that was taken last from the front.
    pub fn taken_first(&self) -> Option<&[u8]> {
        self.taken[0].map(|span| self.slice(span))
    }

    /// The key that was taken last from the back.
    pub fn taken_last(&self) -> Option<&[u8]> {
        self.taken[1].map(|span| self.slice(span))
    }

    /// The first key.
    pub fn first(&self) -> Option<&[u8]> {
        self.pairs.front().map(|pair| self.key(pair))
    }

    /// The last key.
    pub fn last(&self) -> Option<&[u8]> {
        self.pairs.back().map(|pair| self.key(pair))
    }

    /// A copy of the last key.
    pub fn last_key(&self) -> Option<Vec<u8>> {
        self.last().map(<[u8]>::to_vec)
    }

    /// The pair that [`pop_last`](Self::pop_last) would take.
    pub fn back(&self) -> Option<&Pair> {
        self.pairs.back()
    }

    /// The pair `ahead` places behind the first.
    pub fn nth(&self, ahead: usize) -> Option<&Pair> {
        self.pairs.get(ahead)
    }

    /// The key of a pair of this batch.
    pub fn key(&self, pair: &Pair) -> &[u8] {
        self.slice(pair.key)
    }

    /// The value of a pair of this batch.
    pub fn value(&self, pair: &Pair) -> Found<'_> {
        match &pair.value {
            Place::Inline { value, attributes } => {
                Found::Inline(self.slice(*value), attributes.codec())
            }
            Place::Logged {
                offset,
                value_bytes,
                attributes,
            } => Found::Logged {
                offset: *offset,
                value_bytes: *value_bytes,
                attributes: *attributes,
            },
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
        self.taken = [None; 2];
    }

    /// Forgets the pairs; what was taken last stays known.
    pub fn end(&mut self) {
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
                ..
            } => Some((offset, self.key.len as usize + value_bytes as usize)),
            Place::Inline { .. } => None,
        }
    }

    /// What is kept beside its value.
    pub fn attributes(&self) -> Attributes {
        match self.value {
            Place::Inline { attributes, .. } | Place::Logged { attributes, .. } => attributes,
        }
    }
}
