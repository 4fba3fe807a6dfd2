//! A window over the input of a merge: copies of the next few thousand entries, so that their nodes can be
//! prefetched.

use std::ops::Range;

use kreon_base::{Error, LogOffset, Lsn, Payload, Result};

use super::{Entry, EntryStream};

/// Most entries in a window: several rounds of prefetching even with a dozen entries per leaf.
const ENTRIES_MAX: usize = 4096;

/// A window is full when its keys and inline values reach this many bytes.
const BYTES_MAX: usize = 256 << 10;

pub(super) struct Window<'i, I> {
    input: &'i mut I,
    entries: Vec<Held>,
    bytes: Vec<u8>,
    at: usize,
    /// The nodes for entries before this one are loaded.
    loaded: usize,
    is_drained: bool,
}

struct Held {
    key: Range<usize>,
    lsn: Lsn,
    payload: HeldPayload,
}

enum HeldPayload {
    Logged { offset: LogOffset, value_bytes: u32 },
    Inline(Range<usize>),
    Tombstone { offset: LogOffset },
    Erased { key_at: LogOffset },
}

impl<'i, I: EntryStream> Window<'i, I> {
    pub(super) fn new(input: &'i mut I) -> Self {
        Self {
            input,
            entries: Vec::new(),
            bytes: Vec::new(),
            at: 0,
            loaded: 0,
            is_drained: false,
        }
    }

    /// The next entry; none at the end of the input.
    pub(super) fn peek(&mut self) -> Result<Option<Entry<'_>>> {
        if self.at == self.entries.len() && !self.is_drained {
            self.refill()?;
        }
        Ok(self.entries.get(self.at).map(|held| Entry {
            key: self.slice(&held.key),
            lsn: held.lsn,
            payload: match &held.payload {
                HeldPayload::Logged {
                    offset,
                    value_bytes,
                } => Payload::Logged {
                    offset: *offset,
                    value_bytes: *value_bytes,
                },
                HeldPayload::Inline(value) => Payload::Inline {
                    value: self.slice(value),
                },
                HeldPayload::Tombstone { offset } => Payload::Tombstone { offset: *offset },
                HeldPayload::Erased { key_at } => Payload::Erased { key_at: *key_at },
            },
        }))
    }

    /// Skips the entry that [`peek`](Self::peek) returns.
    pub(super) fn advance(&mut self) {
        self.at += 1;
    }

    /// The rest of the window, if the nodes for the next entry are not loaded yet.
    pub(super) fn unloaded(&mut self) -> Result<Option<Range<usize>>> {
        let more = self.peek()?.is_some() && self.at >= self.loaded;
        Ok(more.then_some(self.at..self.entries.len()))
    }

    /// Notes that the nodes for the entries before `index` are loaded.
    pub(super) fn set_loaded(&mut self, index: usize) {
        self.loaded = index;
    }

    /// The key of entry `index` of the window.
    pub(super) fn key(&self, index: usize) -> &[u8] {
        let held = self.entries.get(index);
        held.map_or(&[], |held| self.slice(&held.key))
    }

    fn slice(&self, range: &Range<usize>) -> &[u8] {
        self.bytes.get(range.clone()).unwrap_or_default()
    }

    fn refill(&mut self) -> Result<()> {
        let mut last = self.entries.last().map(|held| Place {
            key: self.slice(&held.key).to_vec(),
            lsn: held.lsn,
        });
        self.entries.clear();
        self.bytes.clear();
        self.at = 0;
        self.loaded = 0;
        while self.entries.len() < ENTRIES_MAX && self.bytes.len() < BYTES_MAX {
            let Some(entry) = self.input.next()? else {
                self.is_drained = true;
                break;
            };
            let in_order = match (&last, self.entries.last()) {
                (Some(last), _) => last.is_before(&entry),
                (None, Some(held)) => {
                    let key = self.bytes.get(held.key.clone()).unwrap_or_default();
                    is_before((key, held.lsn), &entry)
                }
                (None, None) => true,
            };
            if !in_order {
                return Err(Error::invalid("entries to merge that are out of order"));
            }
            last = None;
            let held = hold(&mut self.bytes, &entry);
            self.entries.push(held);
        }
        Ok(())
    }
}

/// The last entry of the previous window.
struct Place {
    key: Vec<u8>,
    lsn: Lsn,
}

impl Place {
    fn is_before(&self, next: &Entry<'_>) -> bool {
        is_before((&self.key, self.lsn), next)
    }
}

fn is_before(last: (&[u8], Lsn), next: &Entry<'_>) -> bool {
    (last.0, next.lsn) < (next.key, last.1)
}

fn hold(bytes: &mut Vec<u8>, entry: &Entry<'_>) -> Held {
    Held {
        key: append(bytes, entry.key),
        lsn: entry.lsn,
        payload: match entry.payload {
            Payload::Logged {
                offset,
                value_bytes,
            } => HeldPayload::Logged {
                offset,
                value_bytes,
            },
            Payload::Inline { value } => HeldPayload::Inline(append(bytes, value)),
            Payload::Tombstone { offset } => HeldPayload::Tombstone { offset },
            Payload::Erased { key_at } => HeldPayload::Erased { key_at },
        },
    }
}

fn append(bytes: &mut Vec<u8>, slice: &[u8]) -> Range<usize> {
    let start = bytes.len();
    bytes.extend_from_slice(slice);
    start..bytes.len()
}
