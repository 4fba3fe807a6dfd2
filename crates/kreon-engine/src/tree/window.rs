//! A window over the input of a merge: copies of the next few thousand entries, so that their nodes can be
//! prefetched.

use std::ops::Range;

use kreon_base::{Error, Lsn, Payload, Result};

use super::{Entry, EntryStream, Version};

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
    version: Version<'static>,
    /// An inline value.
    value: Range<usize>,
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
            lsn: held.version.lsn,
            payload: match held.version.payload {
                Payload::Inline { attributes, .. } => Payload::Inline {
                    value: self.slice(&held.value),
                    attributes,
                },
                payload => payload,
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
        // The last entry of the window before.
        let last = self.entries.last();
        let mut last = last.map(|held| (self.slice(&held.key).to_vec(), held.version.lsn));
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
                (Some((key, lsn)), _) => is_before((key, *lsn), &entry),
                (None, Some(held)) => {
                    let key = self.bytes.get(held.key.clone()).unwrap_or_default();
                    is_before((key, held.version.lsn), &entry)
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

fn is_before(last: (&[u8], Lsn), next: &Entry<'_>) -> bool {
    (last.0, next.lsn) < (next.key, last.1)
}

fn hold(bytes: &mut Vec<u8>, entry: &Entry<'_>) -> Held {
    let value = match entry.payload {
        Payload::Inline { value, .. } => value,
        _ => &[],
    };
    let version = Version {
        lsn: entry.lsn,
        payload: entry.payload,
    };
    Held {
        key: append(bytes, entry.key),
        version: version.without_value(),
        value: append(bytes, value),
    }
}

fn append(bytes: &mut Vec<u8>, slice: &[u8]) -> Range<usize> {
    let start = bytes.len();
    bytes.extend_from_slice(slice);
    start..bytes.len()
}
