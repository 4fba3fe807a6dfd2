//! Nodes of the tree: leaves and index nodes with sorted entries of one word each.
//!
//! An entry is the head of a key (the 4 bytes behind the prefix that the node's keys share) and the reference of its
//! record, so most comparisons read no other memory. Pivots are records as well: an index node copies no keys. In
//! measurements against 8-byte heads, locks and other structures this was the fastest and smallest for keys of about 20
//! bytes.
//!
//! Invariants while nobody holds a node's latch:
//! - entries are in strict key order, and `count` of them are filled;
//! - each key k in or routed to the node has low <= k < high (k <= high for a search from above);
//! - the keys of all entries share the first `prefix_bytes` bytes; in a node with both fences the fences share them as
//!   well, and so does each key that is routed to the node;
//! - child i of an index node has pivot i - 1 as its low fence and pivot i as its high fence;
//! - entries behind the filled ones have the highest head, so a search needs no count.

use kreon_base::sync::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::cmp::Ordering;
use std::hint::select_unpredictable;

use crate::arena::{Arena, AtomicRef, AtomicTagged, Ref, Tagged};
use crate::latch::Latch;
use crate::record::Record;

/// Entries of a node. Capacities of 32 to 128 made no clear difference.
pub(crate) const ENTRIES_MAX: usize = if cfg!(any(miri, loom)) { 4 } else { 64 };

/// A leaf (level 0) or an index node. Changed only with its latch held, or before it is reachable.
pub(crate) struct Node {
    pub latch: Latch,
    count: AtomicU32,
    prefix_bytes: AtomicU32,
    /// The first 8 bytes of the prefix as a big-endian number.
    prefix_start: AtomicU64,
    low: AtomicRef<Record>,
    high: AtomicRef<Record>,
    pub level: u32,
    children: Option<Ref<Children>>,
    entries: [AtomicTagged<Record>; ENTRIES_MAX],
}

/// Content of entries that are not filled.
const UNFILLED: Tagged<Record> = Tagged {
    tag: u32::MAX,
    to: None,
};

/// Children of an index node, one more than its entries.
pub(crate) struct Children([AtomicRef<Node>; ENTRIES_MAX + 1]);

/// Position of a key among the entries of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// Index and record of the key's entry.
    Found(usize, Ref<Record>),
    /// Index that an entry for the key would get.
    Absent(usize),
}

impl Slot {
    /// Number of entries with lower keys.
    pub(crate) fn lower(self) -> usize {
        match self {
            Self::Found(at, _) | Self::Absent(at) => at,
        }
    }
}

impl Node {
    /// Puts an empty node into the arena.
    pub(crate) fn put(arena: &Arena, level: u32) -> Ref<Node> {
        let children = (level > 0).then(|| {
            let none = Children(std::array::from_fn(|_| AtomicRef::new(None)));
            arena.put(none, &[], &[])
        });
        let node = Node {
            latch: Latch::new(),
            count: AtomicU32::new(0),
            prefix_bytes: AtomicU32::new(0),
            prefix_start: AtomicU64::new(0),
            low: AtomicRef::new(None),
            high: AtomicRef::new(None),
            level,
            children,
            entries: std::array::from_fn(|_| AtomicTagged::new(UNFILLED)),
        };
        arena.put(node, &[], &[])
    }

    /// Number of entries.
    pub(crate) fn count(&self) -> usize {
        // Limits a torn read to valid indexes.
        (self.count.load(Relaxed) as usize).min(ENTRIES_MAX)
    }

    /// Whether there is no room for another entry.
    pub(crate) fn is_full(&self) -> bool {
        self.count() == ENTRIES_MAX
    }

    /// The lowest possible key of the node; `None` in the first node of a level.
    pub(crate) fn low(&self) -> Option<Ref<Record>> {
        self.low.load()
    }

    /// The lowest key behind the node; `None` in the last node of a level.
    pub(crate) fn high(&self) -> Option<Ref<Record>> {
        self.high.load()
    }

    /// Sets the fences.
    pub(crate) fn set_fences(&self, low: Option<Ref<Record>>, high: Option<Ref<Record>>) {
        self.low.store(low);
        self.high.store(high);
    }

    /// The record of entry `at`; `None` behind the last one (or in a torn read).
    pub(crate) fn record(&self, at: usize) -> Option<Ref<Record>> {
        self.entries.get(at)?.load().to
    }

    /// Child `at` of an index node.
    pub(crate) fn child(&self, arena: &Arena, at: usize) -> Option<Ref<Node>> {
        arena.get(self.children?).0.get(at)?.load()
    }

    /// Sets child `at` of an index node.
    pub(crate) fn set_child(&self, arena: &Arena, at: usize, child: Option<Ref<Node>>) {
        if let Some(children) = self.children
            && let Some(place) = arena.get(children).0.get(at)
        {
            place.store(child);
        }
    }

    /// Searches for `key`, which must be routed to this node. Like everything read without the latch, the result is
    /// valid only if the latch validates afterwards.
    pub(crate) fn search(&self, arena: &Arena, key: &[u8]) -> Slot {
        let count = self.count();
        let prefix_bytes = self.prefix_bytes.load(Relaxed) as usize;
        match self.side(arena, key, prefix_bytes) {
            Ordering::Less => return Slot::Absent(0),
            Ordering::Greater => return Slot::Absent(count),
            Ordering::Equal => {}
        }
        let head = head(key, prefix_bytes);
        let first = self.lower_bound(head).min(count);
        if first == count || self.entry(first).tag() != head {
            return Slot::Absent(first);
        }
        let key_rest = rest(key, prefix_bytes);
        // Usually one entry has the head, and this comparison decides.
        match self.compare(arena, first, key_rest, prefix_bytes) {
            (Ordering::Less, _) => {}
            (Ordering::Equal, Some(record)) => return Slot::Found(first, record),
            _ => return Slot::Absent(first),
        }
        let mut low = first + 1;
        let mut high = head
            .checked_add(1)
            .map_or(count, |above| self.lower_bound(above).min(count));
        while low < high {
            let middle = (low + high) / 2;
            match self.compare(arena, middle, key_rest, prefix_bytes) {
                (Ordering::Less, _) => low = middle + 1,
                (Ordering::Equal, Some(record)) => return Slot::Found(middle, record),
                _ => high = middle,
            }
        }
        Slot::Absent(low)
    }

    /// Inserts an entry at the index that [`search`](Self::search) returned for `key`, the key of `record`. The node
    /// must not be full.
    pub(crate) fn insert(&self, arena: &Arena, at: usize, key: &[u8], record: Ref<Record>) {
        let count = self.count();
        let prefix_bytes = self.prefix_with(arena, key);
        self.set_prefix(arena, prefix_bytes, key);
        let moved = self.entries.get(at..=count).unwrap_or_default();
        for [from, to] in moved.array_windows().rev() {
            to.store(from.load());
        }
        self.entry(at).store(Tagged {
            tag: head(key, prefix_bytes),
            to: Some(record),
        });
        self.count.store(count as u32 + 1, Relaxed);
    }

    /// Inserts a pivot at `at` and the child to its right.
    pub(crate) fn insert_child(
        &self,
        arena: &Arena,
        at: usize,
        pivot: Ref<Record>,
        child: Ref<Node>,
    ) {
        for place in (at + 1..=self.count()).rev() {
            self.set_child(arena, place + 1, self.child(arena, place));
        }
        self.set_child(arena, at + 1, Some(child));
        self.insert(arena, at, arena.first(pivot), pivot);
    }

    /// Moves the entries from `from` on, with their children, to `right`, which must be empty and of this node's level,
    /// and keeps the entries before `keep`. The heads of both nodes are invalid until [`refit`](Self::refit).
    pub(crate) fn move_entries(&self, arena: &Arena, keep: usize, from: usize, right: &Node) {
        let count = self.count();
        for place in from..count {
            right.entry(place - from).store(self.entry(place).load());
        }
        if self.level > 0 {
            for place in from..=count {
                right.set_child(arena, place - from, self.child(arena, place));
            }
        }
        right.count.store((count - from) as u32, Relaxed);
        right
            .prefix_bytes
            .store(self.prefix_bytes.load(Relaxed), Relaxed);
        right
            .prefix_start
            .store(self.prefix_start.load(Relaxed), Relaxed);
        for place in keep..count {
            self.entry(place).store(UNFILLED);
        }
        self.count.store(keep as u32, Relaxed);
    }

    /// Recomputes the prefix after a change of fences or entries, and the heads if the prefix changed.
    pub(crate) fn refit(&self, arena: &Arena) {
        let ends = match (self.low(), self.high()) {
            (Some(low), Some(high)) => Some((low, high)),
            _ => self
                .record(0)
                .zip(self.record(self.count().saturating_sub(1))),
        };
        if let Some((first, last)) = ends {
            let first = arena.first(first);
            let prefix_bytes = common_bytes(first, arena.first(last));
            self.set_prefix(arena, prefix_bytes, first);
        }
    }

    /// The prefix length after adding `key`. In a node with both fences it does not change: the fences share it with
    /// all keys between them.
    fn prefix_with(&self, arena: &Arena, key: &[u8]) -> usize {
        let prefix_bytes = self.prefix_bytes.load(Relaxed) as usize;
        if self.is_fenced() {
            return prefix_bytes;
        }
        match self.record(0).filter(|_| self.count() > 0) {
            Some(first) => common_bytes(arena.first(first), key).min(prefix_bytes),
            None => key.len(),
        }
    }

    /// Changes the prefix to the first `prefix_bytes` of `key`, which all entries share, and recomputes all heads.
    fn set_prefix(&self, arena: &Arena, prefix_bytes: usize, key: &[u8]) {
        if self.prefix_bytes.load(Relaxed) as usize == prefix_bytes {
            return;
        }
        self.prefix_bytes.store(prefix_bytes as u32, Relaxed);
        let start = first_word(start(key, prefix_bytes));
        self.prefix_start.store(start, Relaxed);
        for place in 0..self.count() {
            let to = self.entry(place).load().to;
            let tag = to.map_or(0, |record| head(arena.first(record), prefix_bytes));
            self.entry(place).store(Tagged { tag, to });
        }
    }

    /// Order of `key` relative to the keys with the node's prefix. Needs work only in the first and the last node of a
    /// level, including the root, where the fences do not bound the keys.
    fn side(&self, arena: &Arena, key: &[u8], prefix_bytes: usize) -> Ordering {
        if prefix_bytes == 0 || self.is_fenced() {
            return Ordering::Equal;
        }
        // Usually the first 8 bytes decide, and no record is read.
        let kept_bits = 8 * prefix_bytes.min(8) as u32;
        let key_start = first_word(key) & (u64::MAX << (64 - kept_bits));
        let by_start = key_start.cmp(&self.prefix_start.load(Relaxed));
        if by_start != Ordering::Equal || (prefix_bytes <= 8 && key.len() >= prefix_bytes) {
            return by_start;
        }
        let Some(first) = self.record(0) else {
            return Ordering::Equal;
        };
        let prefix = start(arena.first(first), prefix_bytes);
        start(key, prefix_bytes).cmp(prefix)
    }

    fn is_fenced(&self) -> bool {
        self.low().is_some() && self.high().is_some()
    }

    /// The first entry whose head is not below `bound`; behind the last one if `bound` is the highest head. Without
    /// branches on the data, half of which would be mispredicted.
    fn lower_bound(&self, bound: u32) -> usize {
        const { assert!(ENTRIES_MAX.is_power_of_two()) };
        let is_below = |at: usize| self.entry(at).is_below(bound);
        let mut base = 0;
        let mut step = ENTRIES_MAX / 2;
        while step > 0 {
            let next = base + step;
            base = select_unpredictable(is_below(next - 1), next, base);
            step /= 2;
        }
        base + usize::from(is_below(base))
    }

    /// Order of the key of entry `at` relative to `key_rest`, from the prefix on, and its record.
    fn compare(
        &self,
        arena: &Arena,
        at: usize,
        key_rest: &[u8],
        prefix_bytes: usize,
    ) -> (Ordering, Option<Ref<Record>>) {
        let record = self.entry(at).load().to;
        let own = record.map_or(&[][..], |record| rest(arena.first(record), prefix_bytes));
        (own.cmp(key_rest), record)
    }

    /// Entry `at`, below the capacity (the remainder is free and rules out a panic).
    fn entry(&self, at: usize) -> &AtomicTagged<Record> {
        &self.entries[at % ENTRIES_MAX]
    }
}

/// The 4 bytes behind the prefix as a big-endian number. Missing bytes count as 0, so equal heads do not imply equal
/// keys.
fn head(key: &[u8], prefix_bytes: usize) -> u32 {
    u32::from_be_bytes(first_bytes(rest(key, prefix_bytes)))
}

/// The first 8 bytes as a big-endian number; missing bytes count as 0.
fn first_word(key: &[u8]) -> u64 {
    u64::from_be_bytes(first_bytes(key))
}

fn first_bytes<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.first_chunk().copied().unwrap_or_else(|| {
        let mut filled_up = [0; N];
        filled_up[..bytes.len()].copy_from_slice(bytes);
        filled_up
    })
}

/// The bytes behind the first `bytes`; empty for a shorter key.
fn rest(key: &[u8], bytes: usize) -> &[u8] {
    key.get(bytes..).unwrap_or(&[])
}

/// The first `bytes` bytes, or all of a shorter key.
fn start(key: &[u8], bytes: usize) -> &[u8] {
    key.get(..bytes).unwrap_or(key)
}

fn common_bytes(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}
