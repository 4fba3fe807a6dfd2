//! The entries of a node under construction, with the exact room they take.

use std::fmt;
use std::ops::Range;

use kreon_base::{PAGE_BYTES, PageBytes};

use crate::entry_code::{NewEntry, Shift};
use crate::heads::{HEAD_BYTES, head_of};
use crate::node::{ENTRY_FRONT_BYTES_MAX, NODE_HEADER_BYTES, SLOT_BYTES, begin_node, note_filters};
use crate::sealed;
use crate::{LONG_KEY_STORED_BYTES, NodeIdentity, PAGE_POINTER_BYTES, PagePointer};

/// Bytes of an entry besides key and body: head, slot, tag.
const ENTRY_BYTES: usize = HEAD_BYTES + SLOT_BYTES + 1;

/// Room that `count` maximal entries of `body_bytes` leave in a node.
pub(crate) const fn room_beside(count: usize, body_bytes: usize) -> usize {
    let entry_bytes = HEAD_BYTES + SLOT_BYTES + ENTRY_FRONT_BYTES_MAX + body_bytes;
    let key_bytes = LONG_KEY_STORED_BYTES - HEAD_BYTES;
    (PAGE_BYTES - NODE_HEADER_BYTES).saturating_sub(count * (entry_bytes + key_bytes))
}

/// Entries in order; their common prefix and the room they take are kept up to date.
///
/// Each entry is encoded on arrival, behind the prefix that is common then. The prefix can only become shorter, and
/// mostly does so early; entries behind a longer prefix are re-encoded when the node is finished, all others are copied
/// in blocks. So entries copied from an existing node cost a few nanoseconds each (see `draft_run`).
#[derive(Default)]
pub(crate) struct NodeDraft {
    /// Encoded entries, downward from the end, as in a page.
    pub(crate) heap: Vec<u8>,
    pub(crate) heap_start: usize,
    pub(crate) heads: Vec<[u8; HEAD_BYTES]>,
    /// Offsets of the entries in `heap`.
    pub(crate) starts: Vec<u16>,
    /// Lengths of the keys.
    pub(crate) lengths: Vec<u16>,
    /// Prefix lengths behind which entries are encoded, each longer than the next.
    spans: Vec<Span>,
    pub(crate) first_key: Vec<u8>,
    pub(crate) last_key: Vec<u8>,
    pub(crate) last_tag: u8,
    pub(crate) prefix_bytes: usize,
    /// Room of the lengths and rests of all keys, given `prefix_bytes`.
    pub(crate) keys_bytes: usize,
    pub(crate) bodies_bytes: usize,
    /// Whether a child of an index node has a filter.
    pub(crate) has_filters: bool,
    /// Of the run being copied: cumulative lengths of bodies.
    pub(crate) run_bodies: Vec<u32>,
    /// Of the run being copied: key of its last entry.
    pub(crate) run_key: Vec<u8>,
}

/// Entries from `first` on are encoded behind this many first bytes of the first key.
#[derive(Clone, Copy)]
struct Span {
    first: usize,
    prefix_bytes: usize,
}

/// The draft after one more entry.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) prefix_bytes: usize,
    pub(crate) keys_bytes: usize,
    /// Bytes of the page in use, without an index node's first child.
    pub(crate) used_bytes: usize,
}

impl NodeDraft {
    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Bytes of the page in use, without an index node's first child.
    pub(crate) fn used_bytes(&self) -> usize {
        self.room(
            self.len(),
            self.prefix_bytes,
            self.keys_bytes,
            self.bodies_bytes,
        )
    }

    pub(crate) fn first_key(&self) -> Option<&[u8]> {
        (self.len() > 0).then_some(&self.first_key)
    }

    /// Key and tag of the last entry.
    pub(crate) fn last(&self) -> Option<(&[u8], u8)> {
        (self.len() > 0).then_some((&self.last_key, self.last_tag))
    }

    /// The draft after appending an entry whose key is not below the last.
    pub(crate) fn plan(&self, key: &[u8], body_bytes: usize) -> Plan {
        let prefix_bytes = match self.first_key() {
            None => key.len(),
            Some(first) => self.prefix_with(&first[..self.prefix_bytes], key),
        };
        let keys_bytes = self.keys_bytes_behind(prefix_bytes) + key_room(key.len(), prefix_bytes);
        let bodies_bytes = self.bodies_bytes + body_bytes;
        Plan {
            prefix_bytes,
            keys_bytes,
            used_bytes: self.room(self.len() + 1, prefix_bytes, keys_bytes, bodies_bytes),
        }
    }

    /// Length of the common prefix of `key` and the prefix so far.
    fn prefix_with(&self, prefix: &[u8], key: &[u8]) -> usize {
        if key.starts_with(prefix) {
            prefix.len()
        } else {
            common_prefix_bytes(prefix, key)
        }
    }

    /// Room of all keys behind a prefix not longer than the current one.
    pub(crate) fn keys_bytes_behind(&self, prefix_bytes: usize) -> usize {
        if prefix_bytes == self.prefix_bytes {
            return self.keys_bytes;
        }
        keys_room(&self.lengths[..self.len()], prefix_bytes)
    }

    /// Appends the entry that `plan` was made for.
    pub(crate) fn push(&mut self, plan: Plan, key: &[u8], tag: u8, body: [&[u8]; 2]) {
        if self.len() == 0 {
            self.first_key.clear();
            self.first_key.extend_from_slice(key);
        }
        self.begin_span(plan.prefix_bytes);
        let remainder = &key[plan.prefix_bytes..];
        let entry = NewEntry {
            tag,
            length: remainder.len(),
            rest: remainder.get(HEAD_BYTES..).unwrap_or_default(),
            body,
        };
        self.heap_start = entry.write(&mut self.heap, self.heap_start);
        self.heads.push(head_of(remainder));
        self.starts.push(self.heap_start as u16);
        self.lengths.push(key.len() as u16);
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.last_tag = tag;
        self.prefix_bytes = plan.prefix_bytes;
        self.keys_bytes = plan.keys_bytes;
        self.bodies_bytes += body[0].len() + body[1].len();
    }

    /// Encodes the following entries behind this many bytes of the first key.
    pub(crate) fn begin_span(&mut self, prefix_bytes: usize) {
        let first = self.len();
        if first == 0 {
            self.heap.resize(PAGE_BYTES, 0);
            self.heap_start = PAGE_BYTES;
        }
        if self
            .spans
            .last()
            .is_none_or(|span| span.prefix_bytes != prefix_bytes)
        {
            self.spans.push(Span {
                first,
                prefix_bytes,
            });
        }
    }

    /// Writes the sealed node into `page`, with `top` between entries and prefix, and empties the draft.
    pub(crate) fn finish(
        &mut self,
        identity: &NodeIdentity,
        count: usize,
        top: &[u8],
        page: &mut PageBytes,
    ) -> PagePointer {
        let front_bytes = NODE_HEADER_BYTES + self.len() * (HEAD_BYTES + SLOT_BYTES);
        let heap_start = PAGE_BYTES - (self.used_bytes() + top.len() - front_bytes);
        begin_node(page, identity, count, self.prefix_bytes, heap_start);
        if self.has_filters {
            note_filters(page, top.len().saturating_sub(PAGE_POINTER_BYTES));
        }
        page[PAGE_BYTES - self.prefix_bytes..]
            .copy_from_slice(&self.first_key[..self.prefix_bytes]);
        let top_at = PAGE_BYTES - self.prefix_bytes - top.len();
        page[top_at..][..top.len()].copy_from_slice(top);
        let heap_end = self.write_entries(page, top_at);
        debug_assert_eq!(heap_end, heap_start);
        self.clear();
        PagePointer {
            page: identity.page,
            epoch: identity.epoch,
            checksum: sealed::seal(page, identity.store, identity.page),
        }
    }

    /// Writes heads and slots from the front and entries downward from `heap`; returns the start of the entries.
    fn write_entries(&self, page: &mut PageBytes, mut heap: usize) -> usize {
        let ends = self.spans.iter().skip(1).map(|span| span.first);
        let ends = ends.chain([self.len()]);
        for (span, end) in self.spans.iter().zip(ends) {
            heap = if span.prefix_bytes == self.prefix_bytes {
                self.copy_span(page, span.first..end, heap)
            } else {
                self.recode_span(page, span.first..end, span.prefix_bytes, heap)
            };
        }
        heap
    }

    /// Copies entries that are encoded behind the node's prefix.
    fn copy_span(&self, page: &mut PageBytes, range: Range<usize>, heap: usize) -> usize {
        let (from, to) = self.heap_of(&range);
        let start = heap - (to - from);
        page[start..heap].copy_from_slice(&self.heap[from..to]);
        let heads = self.heads[range.clone()].as_flattened();
        page[NODE_HEADER_BYTES + range.start * HEAD_BYTES..][..heads.len()].copy_from_slice(heads);
        let slots_at = NODE_HEADER_BYTES + self.len() * HEAD_BYTES;
        let slots =
            &mut page[slots_at + range.start * SLOT_BYTES..slots_at + range.end * SLOT_BYTES];
        for (slot, at) in slots.as_chunks_mut().0.iter_mut().zip(&self.starts[range]) {
            *slot = (at + start as u16 - from as u16).to_le_bytes();
        }
        start
    }

    /// Re-encodes entries that are encoded behind a longer prefix than the node's.
    #[inline(never)]
    fn recode_span(
        &self,
        page: &mut PageBytes,
        range: Range<usize>,
        prefix_bytes: usize,
        mut heap: usize,
    ) -> usize {
        let shift = Shift::Longer(&self.first_key[self.prefix_bytes..prefix_bytes]);
        let (_, mut end) = self.heap_of(&range);
        let slots_at = NODE_HEADER_BYTES + self.len() * HEAD_BYTES;
        for index in range {
            let start = usize::from(self.starts[index]);
            let coded = shift.recode(&self.heads[index], &self.heap[start..end], page, heap);
            let Some((at, head)) = coded else {
                // Unreachable: the heap was encoded here, and the page has room.
                debug_assert!(false, "an entry that cannot be encoded");
                return heap;
            };
            heap = at;
            end = start;
            page[NODE_HEADER_BYTES + index * HEAD_BYTES..][..HEAD_BYTES].copy_from_slice(&head);
            page[slots_at + index * SLOT_BYTES..][..SLOT_BYTES]
                .copy_from_slice(&(heap as u16).to_le_bytes());
        }
        heap
    }

    /// Range in `heap` of the entries `range`, at least one.
    fn heap_of(&self, range: &Range<usize>) -> (usize, usize) {
        let end = match range.start.checked_sub(1) {
            Some(before) => usize::from(self.starts[before]),
            None => PAGE_BYTES,
        };
        (usize::from(self.starts[range.end - 1]), end)
    }

    pub(crate) fn clear(&mut self) {
        self.truncate(0);
        self.prefix_bytes = 0;
        self.keys_bytes = 0;
        self.bodies_bytes = 0;
        self.has_filters = false;
    }

    /// Drops the records of entries from `count` on, but not their share of the sums.
    pub(crate) fn truncate(&mut self, count: usize) {
        self.spans.retain(|span| span.first < count);
        self.heads.truncate(count);
        self.starts.truncate(count);
        self.lengths.truncate(count);
    }

    pub(crate) fn room(&self, count: usize, prefix: usize, keys: usize, bodies: usize) -> usize {
        NODE_HEADER_BYTES + prefix + count * ENTRY_BYTES + keys + bodies
    }
}

impl fmt::Debug for NodeDraft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} entries, {} bytes", self.len(), self.used_bytes())
    }
}

/// Bytes of a key in its entry: its length, and the bytes behind prefix and head.
fn key_room(key_bytes: usize, prefix_bytes: usize) -> usize {
    let length = key_bytes.saturating_sub(prefix_bytes);
    let width = if length > usize::from(u8::MAX) { 2 } else { 1 };
    width + length.saturating_sub(HEAD_BYTES)
}

/// Bytes of keys with these lengths.
pub(crate) fn keys_room(lengths: &[u16], prefix_bytes: usize) -> usize {
    let rooms = lengths
        .iter()
        .map(|&bytes| key_room(bytes.into(), prefix_bytes));
    rooms.sum()
}

/// Length of the common prefix.
pub(crate) fn common_prefix_bytes(left: &[u8], right: &[u8]) -> usize {
    let (left_words, _) = left.as_chunks::<8>();
    let (right_words, _) = right.as_chunks::<8>();
    let pairs = left_words.iter().zip(right_words);
    let same_words = pairs.take_while(|(left, right)| left == right).count();
    let tails = left.iter().zip(right).skip(same_words * 8);
    same_words * 8 + tails.take_while(|(left, right)| left == right).count()
}
