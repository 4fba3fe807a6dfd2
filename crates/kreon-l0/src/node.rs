//! Nodes of the tree: sorted entries of one word each, for leaves and index nodes alike.
//!
//! An entry is the head of a key (the 4 bytes after the prefix that the node's keys share) and the
//! reference of its record, so most comparisons need no other memory. Its pivots are records too: an
//! index node copies no keys. Measured against 8-byte heads, locks and other structures: this was
//! quickest and smallest for keys of some 20 bytes.
//!
//! Invariants, whenever nobody holds a node's latch:
//! - entries are in strict key order and `count` of them are filled;
//! - every key k in or routed to the node has low <= k < high (k <= high for a search from above);
//! - all keys of the entries share the first `prefix_bytes` bytes; in a node with both fences, so do
//!   the fences, and with them every key that is routed to it;
//! - child i of an index node has pivot i - 1 as its low fence and pivot i as its high fence;
//! - the entries behind those that are filled have the highest head, so that a search needs no count.

use kreon_base::sync::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::cmp::Ordering;
use std::hint::select_unpredictable;

use crate::arena::{Arena, AtomicRef, AtomicTagged, Ref, Tagged};
use crate::latch::Latch;
use crate::record::Record;

/// Entries of a node. Capacities of 32 to 128 made no clear difference.
pub(crate) const ENTRIES_MAX: usize = if cfg!(any(miri, loom)) { 4 } else { 64 };

/// A leaf (level 0) or an index node. Changed only by who holds its latch, or before it is reachable.
pub(crate) struct Node {
    pub latch: Latch,
    count: AtomicU32,
    prefix_bytes: AtomicU32,
    /// The first 8 bytes of the prefix as a number that orders like them.
    prefix_start: AtomicU64,
    low: AtomicRef<Record>,
    high: AtomicRef<Record>,
    pub level: u32,
    children: Option<Ref<Children>>,
    entries: [AtomicTagged<Record>; ENTRIES_MAX],
}

/// What stands behind the entries of a node.
const UNFILLED: Tagged<Record> = Tagged {
    tag: u32::MAX,
    to: None,
};

/// Children of an index node, one more than it has entries.
pub(crate) struct Children([AtomicRef<Node>; ENTRIES_MAX + 1]);

/// Where a key is among the entries of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// The entry's index and record.
    Found(usize, Ref<Record>),
    /// The index that an entry for it would get.
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
        // Also bounds what a torn read may see.
        (self.count.load(Relaxed) as usize).min(ENTRIES_MAX)
    }

    /// Whether no entry fits any more.
    pub(crate) fn is_full(&self) -> bool {
        self.count() == ENTRIES_MAX
    }

    /// The lowest key that the node may have; `None` in the first node of a level.
    pub(crate) fn low(&self) -> Option<Ref<Record>> {
        self.low.load()
    }

    /// The lowest key beyond the node; `None` in the last node of a level.
    pub(crate) fn high(&self) -> Option<Ref<Record>> {
        self.high.load()
    }

    /// Sets the fences.
    pub(crate) fn set_fences(&self, low: Option<Ref<Record>>, high: Option<Ref<Record>>) {
        self.low.store(low);
        self.high.store(high);
    }

    /// The record of entry `at`; `None` past the last one (or in a torn read).
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

    /// Finds `key`, which is one that is routed to this node. As everything that is read without the
    /// latch, the result counts only if the latch validates afterwards.
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
        // Mostly one entry has the head, and this comparison settles it.
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

    /// Adds an entry at the index that [`search`](Self::search) gave for `key`, the key of `record`. The
    /// node is not full.
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

    /// Adds a pivot at `at` and the child to the right of it.
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

    /// Moves the entries from `from` on, and their children, to the end of `right`, which is empty and
    /// has this node's level; then those before `keep` are left here. Neither node's heads are right
    /// until [`refit`](Self::refit).
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

    /// Computes the prefix anew after the fences or the entries changed, and the heads if need be.
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

    /// The prefix length that also suits `key`. With both fences there is nothing to do: they share it
    /// with every key in between.
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

    /// Changes the prefix to the first `prefix_bytes` of `key`, and with it all heads. All entries share
    /// them.
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

    /// Where `key` lies relative to all keys that start with the node's prefix. Costs something only in
    /// the first and the last node of a level, the root among them: there the fences do not bound the
    /// keys that come.
    fn side(&self, arena: &Arena, key: &[u8], prefix_bytes: usize) -> Ordering {
        if prefix_bytes == 0 || self.is_fenced() {
            return Ordering::Equal;
        }
        // Mostly the first 8 bytes tell, and no record is touched.
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

    /// First of the entries whose head is not below `bound`; past the last one if it is the highest
    /// head. Without jumps that depend on the data: half of them would be mispredicted.
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

    /// How the key of entry `at` compares, from the prefix on; and its record.
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

    /// Entry `at`, below the capacity (the remainder costs nothing and never panics).
    fn entry(&self, at: usize) -> &AtomicTagged<Record> {
        &self.entries[at % ENTRIES_MAX]
    }
}

/// The 4 bytes after the prefix as a number that orders like them; missing ones count as 0, so equal
/// heads decide nothing.
fn head(key: &[u8], prefix_bytes: usize) -> u32 {
    let rest = rest(key, prefix_bytes);
    match rest.first_chunk::<4>() {
        Some(bytes) => u32::from_be_bytes(*bytes),
        None => {
            let mut bytes = [0; 4];
            bytes[..rest.len()].copy_from_slice(rest);
            u32::from_be_bytes(bytes)
        }
    }
}

/// The first 8 bytes as a number that orders like them; missing ones count as 0.
fn first_word(key: &[u8]) -> u64 {
    match key.first_chunk::<8>() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => {
            let mut bytes = [0; 8];
            bytes[..key.len()].copy_from_slice(key);
            u64::from_be_bytes(bytes)
        }
    }
}

/// What follows the first `bytes`; empty for a shorter key.
fn rest(key: &[u8], bytes: usize) -> &[u8] {
    key.get(bytes..).unwrap_or(&[])
}

/// The first `bytes`, or all of a shorter key.
fn start(key: &[u8], bytes: usize) -> &[u8] {
    key.get(..bytes).unwrap_or(key)
}

fn common_bytes(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}
