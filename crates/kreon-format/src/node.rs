//! The layout that leaves and index nodes share, and the search by heads.
//!
//! A node: header (32 bytes) | heads (8 bytes each) | slots (2 bytes each: offset of the entry) | zeroes | entries, the
//! first one last | for an index node its first child, with its filter | common prefix.
//!
//! An entry: tag (1 byte) | bytes of the key behind the prefix (1 byte, 2 if the tag says so) | bytes of the key behind
//! the head | body (of a leaf: see `leaf_entry`; of an index node: the page pointer, and the filter if the tag says
//! so).

use std::cmp::Ordering;
use std::ops::Range;

use kreon_base::{Epoch, Error, PAGE_BYTES, PageBytes, PageNo, RegionId, Result};

use crate::bytes::{array_at, put_u16, put_u32, put_u48, u16_at, u32_at, u48_at};
use crate::heads::{HEAD_BYTES, Probe};
use crate::sealed::{self, PREAMBLE_BYTES, PageKind};
use crate::{PAGE_POINTER_BYTES, StoreId};

/// A longer key has only this many first bytes in a node; the rest is in the log record that its entry points to.
pub const LONG_KEY_STORED_BYTES: usize = 1024;

/// Largest inline value. With it three maximal entries fit in any leaf.
pub const INLINE_VALUE_BYTES_MAX: usize = 256;

/// Length of a node's header in bytes: half a cache line.
pub const NODE_HEADER_BYTES: usize = 32;

/// Bytes of a slot.
pub(crate) const SLOT_BYTES: usize = 2;

/// Flag in the tag of an entry whose key length takes 2 bytes.
pub(crate) const TAG_WIDE: u8 = 0x80;

/// Largest length of tag and key length, in bytes.
pub(crate) const ENTRY_FRONT_BYTES_MAX: usize = 3;

const PAGE_AT: usize = PREAMBLE_BYTES;
const EPOCH_AT: usize = 14;
const REGION_AT: usize = 20;
const COUNT_AT: usize = 24;
const PREFIX_BYTES_AT: usize = 26;
const HEAP_START_AT: usize = 28;
/// Offset of the length of the first child's filter; 0 there means no filter, and in a leaf.
const TOP_FILTER_BYTES_AT: usize = 30;

const _: () =
    assert!(TOP_FILTER_BYTES_AT + 2 == NODE_HEADER_BYTES && PAGE_BYTES <= u16::MAX as usize);

/// Identity of a node. Its header carries all of it except the store, which seeds the checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeIdentity {
    /// The store that the node belongs to.
    pub store: StoreId,
    /// The page that holds it.
    pub page: PageNo,
    /// The epoch that writes it.
    pub epoch: Epoch,
    /// The region whose tree it is part of.
    pub region: RegionId,
    /// Height above the leaves: 0 for a leaf.
    pub level: u8,
}

/// Starts a node in `page`. `count` is the number of a leaf's entries or an index node's children.
pub(crate) fn begin_node(
    page: &mut PageBytes,
    identity: &NodeIdentity,
    count: usize,
    prefix_bytes: usize,
    heap_start: usize,
) {
    sealed::begin(page, PageKind::Node, identity.level);
    put_u48(page, PAGE_AT, identity.page.0);
    put_u48(page, EPOCH_AT, identity.epoch.0);
    put_u32(page, REGION_AT, identity.region.0);
    put_u16(page, COUNT_AT, count as u16);
    put_u16(page, PREFIX_BYTES_AT, prefix_bytes as u16);
    put_u16(page, HEAP_START_AT, heap_start as u16);
}

/// Marks an index node as one with filters; the filter of its first child has `top_filter_bytes`.
pub(crate) fn note_filters(page: &mut PageBytes, top_filter_bytes: usize) {
    sealed::set_version(page, FILTERS_VERSION);
    put_u16(page, TOP_FILTER_BYTES_AT, top_filter_bytes as u16);
}

/// First version of the format with filters.
pub(crate) const FILTERS_VERSION: u8 = 3;

/// The parts that leaves and index nodes have in common. Opening checks that heads, slots, entries and prefix do not
/// overlap; each entry is checked when it is read.
#[derive(Clone, Copy)]
pub(crate) struct NodeView<'a> {
    page: &'a PageBytes,
    pub(crate) heads: &'a [[u8; HEAD_BYTES]],
    pub(crate) slots: &'a [[u8; SLOT_BYTES]],
    pub(crate) prefix: &'a [u8],
    heap_start: usize,
}

/// The parts of an entry. The end of the body is not known here: the slice runs to the end of the page.
#[derive(Clone, Copy)]
pub(crate) struct RawEntry<'a> {
    pub(crate) tag: u8,
    /// Bytes of the stored key behind the prefix.
    pub(crate) length: usize,
    /// Bytes of the stored key behind the head.
    pub(crate) rest: &'a [u8],
    pub(crate) body: &'a [u8],
}

/// Position and lengths of an entry.
pub(crate) struct EntrySpan {
    pub(crate) start: usize,
    /// Bytes of the stored key behind the prefix.
    pub(crate) length: usize,
    pub(crate) body_bytes: usize,
}

/// Position of a key relative to a node's keys, as far as the common prefix decides.
pub(crate) enum KeyPosition<'k> {
    /// Before all keys.
    Before,
    /// Behind all keys.
    After,
    /// The key has the prefix.
    Among(Probe<'k>),
}

impl<'a> NodeView<'a> {
    /// Opens a leaf (`leaf`) or an index node, in constant time.
    pub(crate) fn open(page: &'a PageBytes, leaf: bool) -> Result<Self> {
        Self::parts(page, leaf).ok_or_else(|| not_a_node(page, leaf))
    }

    fn parts(page: &'a PageBytes, leaf: bool) -> Option<Self> {
        if !PageKind::Node.marks(page) || (sealed::detail(page) == 0) != leaf {
            return None;
        }
        let count = usize::from(u16_at(page, COUNT_AT));
        let (pivots, top_bytes) = if leaf {
            (count, 0)
        } else {
            (count.checked_sub(1)?, top_bytes(page))
        };
        let prefix_start = PAGE_BYTES.checked_sub(usize::from(u16_at(page, PREFIX_BYTES_AT)))?;
        let heap_end = prefix_start.checked_sub(top_bytes)?;
        let heap_start = usize::from(u16_at(page, HEAP_START_AT));
        let slots_at = NODE_HEADER_BYTES + pivots * HEAD_BYTES;
        let slots_end = slots_at + pivots * SLOT_BYTES;
        if slots_end > heap_start || heap_start > heap_end {
            return None;
        }
        Some(Self {
            page,
            heads: page.get(NODE_HEADER_BYTES..slots_at)?.as_chunks().0,
            slots: page.get(slots_at..slots_end)?.as_chunks().0,
            prefix: page.get(prefix_start..)?,
            heap_start,
        })
    }

    /// The page number in the header.
    pub(crate) fn page_no(&self) -> PageNo {
        PageNo(u48_at(self.page, PAGE_AT))
    }

    /// The epoch in the header.
    pub(crate) fn epoch(&self) -> Epoch {
        Epoch(u48_at(self.page, EPOCH_AT))
    }

    /// The region in the header.
    pub(crate) fn region(&self) -> RegionId {
        RegionId(u32_at(self.page, REGION_AT))
    }

    /// The height above the leaves.
    pub(crate) fn level(&self) -> u8 {
        sealed::detail(self.page)
    }

    /// Bytes in use: all except the zeroes between slots and entries.
    pub(crate) fn used_bytes(&self) -> usize {
        let front_bytes = NODE_HEADER_BYTES + self.heads.len() * (HEAD_BYTES + SLOT_BYTES);
        front_bytes + (PAGE_BYTES - self.heap_start)
    }

    /// Whether the gap between slots and entries is zero, and in a leaf the header fields of index nodes.
    pub(crate) fn is_clean(&self) -> bool {
        let slots_end = NODE_HEADER_BYTES + self.heads.len() * (HEAD_BYTES + SLOT_BYTES);
        let gap = self.page.get(slots_end..self.heap_start);
        let spare = self.page.get(TOP_FILTER_BYTES_AT..NODE_HEADER_BYTES);
        let spare = spare.filter(|_| self.level() == 0);
        // An OR of all bytes without early exit, so that the compiler can vectorise it.
        let any_bit = |bytes: &[u8]| bytes.iter().fold(0, |bits, byte| bits | byte);
        gap.map_or(0, any_bit) | spare.map_or(0, any_bit) == 0
    }

    /// Start and end of the entries.
    pub(crate) fn heap(&self) -> (usize, usize) {
        let top_bytes = if self.level() == 0 {
            0
        } else {
            top_bytes(self.page)
        };
        let end = PAGE_BYTES - self.prefix.len() - top_bytes;
        (self.heap_start, end)
    }

    /// The first child of an index node.
    pub(crate) fn top(&self) -> Option<[u8; PAGE_POINTER_BYTES]> {
        array_at(self.page, self.heap().1)
    }

    /// The filter of the first child of an index node, if it has one.
    pub(crate) fn top_filter(&self) -> Option<&'a [u8]> {
        let bytes = top_bytes(self.page);
        let at = self.heap().1;
        let filter = self.page.get(at + PAGE_POINTER_BYTES..at + bytes);
        filter.filter(|filter| !filter.is_empty())
    }

    /// The format version in the node's header.
    pub(crate) fn version(&self) -> u8 {
        sealed::version(self.page)
    }

    /// Offset of entry `index`.
    pub(crate) fn entry_at(&self, index: usize) -> Option<usize> {
        self.slots
            .get(index)
            .map(|slot| usize::from(u16::from_le_bytes(*slot)))
    }

    /// End of entry `index`, if the entries are contiguous, as they are in a checked node.
    pub(crate) fn entry_end(&self, index: usize) -> Option<usize> {
        match index.checked_sub(1) {
            Some(before) => self.entry_at(before),
            None => Some(self.heap().1),
        }
    }

    /// Start of entry `index`, which ends at `end`, and the lengths of its parts.
    pub(crate) fn entry_span(&self, index: usize, end: usize) -> Option<EntrySpan> {
        let start = self.entry_at(index)?;
        let [tag, low, high] = array_at(self.page, start)?;
        let (length, front_bytes) = if tag & TAG_WIDE == 0 {
            (usize::from(low), 2)
        } else {
            (usize::from(u16::from_le_bytes([low, high])), 3)
        };
        if self.prefix.len() + length > LONG_KEY_STORED_BYTES {
            return None;
        }
        let key_bytes = front_bytes + length.saturating_sub(HEAD_BYTES);
        let body_bytes = end.checked_sub(start)?.checked_sub(key_bytes)?;
        Some(EntrySpan {
            start,
            length,
            body_bytes,
        })
    }

    /// The tag of entry `index`.
    pub(crate) fn tag(&self, index: usize) -> Option<u8> {
        self.byte(self.entry_at(index)?)
    }

    /// Bytes of the page.
    pub(crate) fn bytes(&self, range: Range<usize>) -> Option<&'a [u8]> {
        self.page.get(range)
    }

    /// The byte at `at`.
    pub(crate) fn byte(&self, at: usize) -> Option<u8> {
        self.page.get(at).copied()
    }

    /// The parts of entry `index`.
    pub(crate) fn raw(&self, index: usize) -> Option<RawEntry<'a>> {
        let (tag, length, bytes) = split_front(self.page.get(self.entry_at(index)?..)?)?;
        if self.prefix.len() + length > LONG_KEY_STORED_BYTES {
            return None;
        }
        let (rest, body) = bytes.split_at_checked(length.saturating_sub(HEAD_BYTES))?;
        Some(RawEntry {
            tag,
            length,
            rest,
            body,
        })
    }

    /// Like [`raw`](Self::raw), with an error that names the entry.
    pub(crate) fn entry(&self, index: usize) -> Result<RawEntry<'a>> {
        self.raw(index).ok_or_else(|| self.damaged(index))
    }

    /// Replaces the content of `key` by the stored key of entry `index`.
    pub(crate) fn key_into(&self, index: usize, key: &mut Vec<u8>) -> Result<()> {
        self.key_of(index, &self.entry(index)?, key)
    }

    /// The same with the parts of that entry.
    #[inline]
    pub(crate) fn key_of(
        &self,
        index: usize,
        entry: &RawEntry<'_>,
        key: &mut Vec<u8>,
    ) -> Result<()> {
        let head = self.heads.get(index).ok_or_else(|| self.damaged(index))?;
        key.clear();
        key.reserve(self.prefix.len() + HEAD_BYTES + entry.rest.len());
        key.extend_from_slice(self.prefix);
        // All of the head, because a copy of fixed length costs no call.
        key.extend_from_slice(head);
        key.truncate(self.prefix.len() + entry.length.min(HEAD_BYTES));
        key.extend_from_slice(entry.rest);
        Ok(())
    }

    /// Position of the stored key, as far as the prefix decides.
    pub(crate) fn place<'k>(&self, stored: &'k [u8]) -> KeyPosition<'k> {
        match stored.strip_prefix(self.prefix) {
            Some(remainder) => KeyPosition::Among(Probe::new(remainder)),
            None if stored < self.prefix => KeyPosition::Before,
            None => KeyPosition::After,
        }
    }

    /// The first entry whose stored key is not below the probe's, and whether it is equal.
    pub(crate) fn seek(&self, probe: &Probe<'_>) -> Result<(usize, bool)> {
        let first = probe.lower_bound(self.heads);
        if !self
            .heads
            .get(first)
            .is_some_and(|head| probe.has_head(head))
        {
            return Ok((first, false));
        }
        match self.compare(first, probe)? {
            Ordering::Equal => return Ok((first, true)),
            Ordering::Greater => return Ok((first, false)),
            Ordering::Less => {}
        }
        let end = self.run_end(first, probe);
        let at = self.partition(first + 1, end, |order| order == Ordering::Less, probe)?;
        Ok((at, at < end && self.compare(at, probe)? == Ordering::Equal))
    }

    /// End of the run of entries from `first` on whose stored key equals the probe's.
    pub(crate) fn seek_end(&self, first: usize, probe: &Probe<'_>) -> Result<usize> {
        let end = self.run_end(first, probe);
        self.partition(first, end, |order| order != Ordering::Greater, probe)
    }

    fn run_end(&self, first: usize, probe: &Probe<'_>) -> usize {
        first + probe.run_end(self.heads.get(first..).unwrap_or_default())
    }

    fn partition(
        &self,
        mut first: usize,
        mut end: usize,
        before: impl Fn(Ordering) -> bool,
        probe: &Probe<'_>,
    ) -> Result<usize> {
        while first < end {
            let middle = first.midpoint(end);
            if before(self.compare(middle, probe)?) {
                first = middle + 1;
            } else {
                end = middle;
            }
        }
        Ok(first)
    }

    /// Order of entry `index`, which has the probe's head, relative to the probe.
    fn compare(&self, index: usize, probe: &Probe<'_>) -> Result<Ordering> {
        let entry = self.entry(index)?;
        Ok(probe.compare(entry.length, entry.rest))
    }

    /// The error for an entry that does not exist or is damaged.
    #[cold]
    pub(crate) fn damaged(&self, index: usize) -> Error {
        let count = self.heads.len();
        PageKind::Node.damaged(
            self.page_no(),
            format_args!("entry {index} of {count} is damaged or missing"),
        )
    }
}

/// Splits an entry into its tag, without the flag of a wide length, the length of its key behind the prefix, and the
/// bytes behind these.
#[inline]
pub(crate) fn split_front(entry: &[u8]) -> Option<(u8, usize, &[u8])> {
    let (&tag, bytes) = entry.split_first()?;
    if tag & TAG_WIDE == 0 {
        let (&length, bytes) = bytes.split_first()?;
        return Some((tag, usize::from(length), bytes));
    }
    let (length, bytes) = bytes.split_first_chunk()?;
    let length = usize::from(u16::from_le_bytes(*length));
    Some((tag & !TAG_WIDE, length, bytes))
}

/// Bytes of an index node's first child, its filter included.
fn top_bytes(page: &PageBytes) -> usize {
    PAGE_POINTER_BYTES + usize::from(u16_at(page, TOP_FILTER_BYTES_AT))
}

/// The first bytes of `key`, as many as a node stores.
pub(crate) fn stored_part(key: &[u8]) -> &[u8] {
    key.get(..LONG_KEY_STORED_BYTES).unwrap_or(key)
}

#[cold]
fn not_a_node(page: &PageBytes, leaf: bool) -> Error {
    let wanted = if leaf { "leaf" } else { "index node" };
    PageKind::Node.damaged(
        PageNo(u48_at(page, PAGE_AT)),
        format_args!("not a well-formed {wanted}"),
    )
}
