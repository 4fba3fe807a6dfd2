//! Walking an L0 in key order, both ways, beside writers.

use crate::arena::Ref;
use crate::chain::Versions;
use crate::node::{ENTRIES_MAX, Slot};
use crate::record::Record;
use crate::tree::{Tree, Way};

/// Bytes at the start of a record that a walk reads: its words and a key of usual length.
const RECORD_PREFETCH_BYTES: usize = 64;

/// A position in an L0, on a key or nowhere.
///
/// The cursor copies the references of a whole leaf when it gets there and goes on from the leaf's
/// fence, so it never waits for a writer and never holds one up. Walking in one direction, it yields
/// keys in strict order, each once: every key that was there when the walk began, and of those that
/// came since the ones that were in a leaf when the cursor got to it.
///
/// Each movement returns whether the cursor stands on a key afterwards. From nowhere,
/// [`next`](Self::next) and [`prev`](Self::prev) lead nowhere.
pub struct Cursor<'a> {
    tree: &'a Tree,
    leaf: Leaf,
    /// Index of the key in the leaf; `None` is nowhere.
    at: Option<usize>,
}

/// A copy of what a leaf said at one moment.
struct Leaf {
    records: [Option<Ref<Record>>; ENTRIES_MAX],
    count: usize,
    low: Option<Ref<Record>>,
    high: Option<Ref<Record>>,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(tree: &'a Tree) -> Self {
        let leaf = Leaf {
            records: [None; ENTRIES_MAX],
            count: 0,
            low: None,
            high: None,
        };
        Self {
            tree,
            leaf,
            at: None,
        }
    }

    /// Goes to the first key that is not below `key`.
    pub fn seek(&mut self, key: &[u8]) -> bool {
        let at = self.load(Way::To(key)).lower();
        self.settle_up(at)
    }

    /// Goes to the last key that is below `key`.
    pub fn seek_before(&mut self, key: &[u8]) -> bool {
        let end = self.load(Way::Before(key)).lower();
        self.settle_down(end)
    }

    /// Goes to the first key.
    pub fn first(&mut self) -> bool {
        self.load(Way::First);
        self.settle_up(0)
    }

    /// Goes to the last key.
    pub fn last(&mut self) -> bool {
        self.load(Way::Last);
        self.settle_down(self.leaf.count)
    }

    /// Goes to the next higher key. Costs a descent for each leaf, of some 45 keys.
    #[expect(clippy::should_implement_trait, reason = "a cursor lends, both ways")]
    pub fn next(&mut self) -> bool {
        match self.at {
            Some(at) => self.settle_up(at + 1),
            None => false,
        }
    }

    /// Goes to the next lower key. Costs the same.
    pub fn prev(&mut self) -> bool {
        match self.at {
            Some(at) => self.settle_down(at),
            None => false,
        }
    }

    /// Whether the cursor stands on a key.
    pub fn is_valid(&self) -> bool {
        self.at.is_some()
    }

    /// The key; empty if the cursor stands nowhere. Borrows from the L0, not from the cursor.
    pub fn key(&self) -> &'a [u8] {
        self.record()
            .map_or(&[], |record| self.tree.arena.first(record))
    }

    /// The versions of the key as of now, newest first; none if the cursor stands nowhere.
    pub fn versions(&self) -> Versions<'a> {
        match self.record() {
            Some(record) => Versions::of(&self.tree.arena, record),
            None => Versions::none(&self.tree.arena),
        }
    }

    fn record(&self) -> Option<Ref<Record>> {
        self.leaf.records.get(self.at?).copied()?
    }

    /// Goes to index `at` of the leaf, or to the start of a later leaf.
    fn settle_up(&mut self, mut at: usize) -> bool {
        while at >= self.leaf.count {
            let Some(high) = self.leaf.high else {
                self.at = None;
                return false;
            };
            // The fence is a key, and in the leaf that starts with it.
            at = self.load(Way::To(self.tree.arena.first(high))).lower();
        }
        self.at = Some(at);
        true
    }

    /// Goes to the last index below `end` of the leaf, or to the end of an earlier leaf.
    fn settle_down(&mut self, mut end: usize) -> bool {
        while end == 0 {
            let Some(low) = self.leaf.low else {
                self.at = None;
                return false;
            };
            end = self.load(Way::Before(self.tree.arena.first(low))).lower();
        }
        self.at = Some(end - 1);
        true
    }

    /// Copies the leaf at the end of `way`; returns where the way's key is in it.
    fn load(&mut self, way: Way<'_>) -> Slot {
        let arena = &self.tree.arena;
        let leaf = &mut self.leaf;
        let slot = self.tree.read_leaf(way, |node| {
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
        });
        // Records lie in the order of insertion: without this each key would cost a cache miss.
        for record in leaf.records.iter().take(leaf.count).flatten() {
            arena.prefetch(*record, RECORD_PREFETCH_BYTES);
        }
        slot
    }
}
