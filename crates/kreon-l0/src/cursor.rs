//! Iteration over an L0 in key order, in both directions, concurrently with writers.

use std::ops::Range;

use crate::arena::Ref;
use crate::chain::Versions;
use crate::node::{ENTRIES_MAX, Slot};
use crate::record::Record;
use crate::tree::{Tree, Way};

/// Bytes of a record that an iteration reads: its words and a key of usual length.
const RECORD_PREFETCH_BYTES: usize = 64;

/// How many records ahead of the cursor are asked for. A scan that merges an L0 with larger levels takes a few of a leaf.
const PREFETCHED_AHEAD: usize = 6;

/// A position in an L0: on a key, or none.
///
/// The cursor copies the references of a whole leaf when it enters it and goes on from the leaf's fence, so it never
/// waits for a writer and never delays one. Moving in one direction it returns keys in strict order, each once: all
/// keys that were there when the iteration started, and those newer keys that were in a leaf when the cursor entered
/// it.
///
/// Each move returns whether the cursor is on a key afterwards. Without a position, [`next`](Self::next) and
/// [`prev`](Self::prev) return `false`.
pub struct Cursor<'a> {
    tree: &'a Tree,
    leaf: LeafCopy,
    /// Index of the key in the leaf; `None`: no position.
    at: Option<usize>,
    /// The record of the leaf that is prefetched next, in the direction of the last move; `None`: none was since the leaf
    /// was entered.
    ahead: Option<usize>,
}

/// A consistent copy of a leaf.
struct LeafCopy {
    records: [Option<Ref<Record>>; ENTRIES_MAX],
    count: usize,
    low: Option<Ref<Record>>,
    high: Option<Ref<Record>>,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(tree: &'a Tree) -> Self {
        let leaf = LeafCopy {
            records: [None; ENTRIES_MAX],
            count: 0,
            low: None,
            high: None,
        };
        Self {
            tree,
            leaf,
            at: None,
            ahead: None,
        }
    }

    /// Moves to the first key that is not below `key`.
    pub fn seek(&mut self, key: &[u8]) -> bool {
        let at = self.load(Way::To(key)).lower();
        self.settle_up(at)
    }

    /// Moves to the last key below `key`.
    pub fn seek_before(&mut self, key: &[u8]) -> bool {
        let end = self.load(Way::Before(key)).lower();
        self.settle_down(end)
    }

    /// Moves to the first key.
    pub fn first(&mut self) -> bool {
        self.load(Way::First);
        self.settle_up(0)
    }

    /// Moves to the last key.
    pub fn last(&mut self) -> bool {
        self.load(Way::Last);
        self.settle_down(self.leaf.count)
    }

    /// Moves to the next higher key. Costs one descent for each leaf of about 45 keys.
    #[expect(clippy::should_implement_trait, reason = "a cursor lends, both ways")]
    pub fn next(&mut self) -> bool {
        match self.at {
            Some(at) => self.settle_up(at + 1),
            None => false,
        }
    }

    /// Moves to the next lower key, at the same cost.
    pub fn prev(&mut self) -> bool {
        match self.at {
            Some(at) => self.settle_down(at),
            None => false,
        }
    }

    /// Whether the cursor is on a key.
    pub fn is_valid(&self) -> bool {
        self.at.is_some()
    }

    /// The key; empty without a position. Borrows from the L0, not from the cursor.
    pub fn key(&self) -> &'a [u8] {
        self.record()
            .map_or(&[], |record| self.tree.arena.first(record))
    }

    /// The current versions of the key, newest first; none without a position.
    pub fn versions(&self) -> Versions<'a> {
        match self.record() {
            Some(record) => Versions::of(&self.tree.arena, record),
            None => Versions::none(&self.tree.arena),
        }
    }

    fn record(&self) -> Option<Ref<Record>> {
        self.leaf.records.get(self.at?).copied()?
    }

    /// Moves to index `at` of the leaf, or to the start of a later leaf.
    fn settle_up(&mut self, mut at: usize) -> bool {
        while at >= self.leaf.count {
            let Some(high) = self.leaf.high else {
                self.at = None;
                return false;
            };
            // The upper fence is the first possible key of the next leaf.
            at = self.load(Way::To(self.tree.arena.first(high))).lower();
        }
        // Records are in the order of insertion, so without prefetches each key would cost a cache miss.
        let end = (at + PREFETCHED_AHEAD).min(self.leaf.count);
        let start = self.ahead.unwrap_or(at).clamp(at, end);
        self.prefetch(start..end);
        self.ahead = Some(end);
        self.at = Some(at);
        true
    }

    /// Moves to the last index below `end` of the leaf, or to the end of an earlier leaf.
    fn settle_down(&mut self, mut end: usize) -> bool {
        while end == 0 {
            let Some(low) = self.leaf.low else {
                self.at = None;
                return false;
            };
            end = self.load(Way::Before(self.tree.arena.first(low))).lower();
        }
        let start = end.saturating_sub(PREFETCHED_AHEAD);
        self.prefetch(start..self.ahead.unwrap_or(end).clamp(start, end));
        self.ahead = Some(start);
        self.at = Some(end - 1);
        true
    }

    fn prefetch(&self, records: Range<usize>) {
        let records = self.leaf.records.get(records).unwrap_or_default();
        for record in records.iter().flatten() {
            self.tree.arena.prefetch(*record, RECORD_PREFETCH_BYTES);
        }
    }

    /// Copies the leaf that `way` leads to; returns the position of the way's key in it.
    fn load(&mut self, way: Way<'_>) -> Slot {
        let arena = &self.tree.arena;
        let leaf = &mut self.leaf;
        self.ahead = None;
        self.tree.read_leaf(way, |node| {
            leaf.count = node.count();
            leaf.low = node.low();
            leaf.high = node.high();
            for (at, record) in leaf.records.iter_mut().enumerate() {
                *record = node.record(at);
            }
            match way {
                Way::To(key) | Way::Before(key) => node.search(arena, key),
                Way::First | Way::Last => Slot::Absent(0),
            }
        })
    }
}
