//! The index and its lookups.

use super::key::Key;
use super::location::Location;
use super::node::{NODE_BYTES_MAX, NONE, Position};
use super::nodes::Nodes;

/// Largest number of bytes of a key in the index.
pub const KEY_BYTES_LIMIT: usize = 1024;

/// Bytes of a node while keys have at most [`SMALL_KEY_BYTES`] bytes in the index.
const NODE_BYTES: usize = 2048;

/// Up to here a node of 2 KiB has room for three of the longest entries, which splits rely on.
const SMALL_KEY_BYTES: usize = 512;

/// Levels for which the path of a change has room from the beginning.
const PATH_LEVELS: usize = 16;

/// The keys of a partition, each with the location of its item: the first N bytes of a key, and whether it goes on.
///
/// Of whole keys (up to N bytes) there is one entry each, if the caller inserts no second one; of longer keys one for
/// each item, in the order of their locations. No call takes more than O(log entries), or O(log entries + what it hands
/// out), however many keys look alike.
pub struct Index {
    pub(super) nodes: Nodes,
    pub(super) root: u32,
    /// Levels of nodes; 0 if there is no entry.
    pub(super) levels: u8,
    pub(super) entries: u64,
    /// Counts changes.
    pub(super) version: u64,
    /// Leaf and slot of the newest entry, to tell ascending inserts.
    pub(super) newest: (u32, usize),
    /// The way from the root to a leaf during a change; kept for its memory.
    pub(super) path: Vec<Step>,
    key_bytes_max: usize,
}

/// An inner node on the way down, and the slot of the child that was taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) node: u32,
    pub(super) slot: usize,
}

impl Index {
    /// An empty index of the first `key_bytes_max` bytes of each key: 1 to [`KEY_BYTES_LIMIT`]; what is outside is taken
    /// as the nearest.
    pub fn new(key_bytes_max: usize) -> Self {
        let key_bytes_max = key_bytes_max.clamp(1, KEY_BYTES_LIMIT);
        let node_bytes = if key_bytes_max <= SMALL_KEY_BYTES {
            NODE_BYTES
        } else {
            NODE_BYTES_MAX
        };
        Self::with_node_bytes(key_bytes_max, node_bytes)
    }

    /// As [`Self::new`], with nodes of a given size: at most [`NODE_BYTES_MAX`], and enough for three inner entries of the
    /// longest keys.
    pub(super) fn with_node_bytes(key_bytes_max: usize, node_bytes: usize) -> Self {
        Self {
            nodes: Nodes::new(node_bytes),
            root: NONE,
            levels: 0,
            entries: 0,
            version: 0,
            newest: (NONE, 0),
            path: Vec::with_capacity(PATH_LEVELS),
            key_bytes_max,
        }
    }

    /// N: how many bytes of a key stand in the index at most.
    pub fn key_bytes_max(&self) -> usize {
        self.key_bytes_max
    }

    /// Number of entries.
    pub fn len(&self) -> u64 {
        self.entries
    }

    /// Counts changes: as long as it is the same, so is what every key finds.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Whether all of `key` stands in the index: it has at most N bytes.
    pub fn is_whole(&self, key: &[u8]) -> bool {
        key.len() <= self.key_bytes_max
    }

    /// Heap memory in bytes, without what the allocator adds. Nodes come and go by 32.
    pub fn memory_bytes(&self) -> usize {
        self.nodes.memory_bytes() + self.path.capacity() * size_of::<Step>()
    }

    /// What [`Self::memory_bytes`] grows by at most in the next call of [`Self::insert`] or [`Self::replace`], of any key:
    /// mostly 0, as nodes come by 32. (For the time of the call, a split takes a few KiB more.)
    pub fn growth_bytes_max(&self) -> usize {
        // Every level may be split, and the root besides gets a node above it.
        let levels = usize::from(self.levels);
        let path = if levels >= self.path.capacity() {
            self.path.capacity().max(1) * size_of::<Step>()
        } else {
            0
        };
        self.nodes.growth_bytes(levels + 1) + path
    }

    /// Locations of the items whose keys look like `key` in the index: at most one if the key is whole; else of all
    /// longer keys with the same first N bytes, the lowest location first. Allocates nothing.
    ///
    /// The tree is searched here and not by the iterator, which mostly reads one more cache line.
    pub fn find<'a>(&'a self, key: &'a [u8]) -> Found<'a> {
        let key = self.key(key, 0);
        let (leaf, position) = self.lower_bound(&key);
        Found {
            index: self,
            key,
            leaf,
            slot: position.slot,
        }
    }

    /// Whether an item whose key looks like `key` is at `at`.
    pub fn has(&self, key: &[u8], at: Location) -> bool {
        let key = self.key(key, at.units());
        self.lower_bound(&key).1.exact
    }

    /// What stands in the index of a key.
    pub(super) fn key<'a>(&self, key: &'a [u8], at: u64) -> Key<'a> {
        Key {
            bytes: key.get(..self.key_bytes_max).unwrap_or(key),
            truncated: !self.is_whole(key),
            at,
        }
    }

    /// Where the first entry that is not less than the key stands; the slot may be the one behind the last of the leaf,
    /// and the entry then the first of the next.
    pub(super) fn lower_bound(&self, key: &Key<'_>) -> (u32, Position) {
        if self.levels == 0 {
            return (NONE, Position::default());
        }
        let mut node = self.nodes.get_to_search(self.root);
        let mut number = self.root;
        for _ in 1..self.levels {
            number = node.child(node.child_slot(key));
            node = self.nodes.get_to_search(number);
        }
        (number, node.search(key))
    }

    /// Goes down to the leaf where the key belongs, and notes the way. There is a root.
    pub(super) fn descend(&self, key: &Key<'_>, path: &mut Vec<Step>) -> u32 {
        path.clear();
        let mut number = self.root;
        for _ in 1..self.levels {
            let node = self.nodes.get_to_search(number);
            let slot = node.child_slot(key);
            path.push(Step { node: number, slot });
            number = node.child(slot);
        }
        number
    }
}

/// The locations that [`Index::find`] finds.
#[derive(Clone)]
pub struct Found<'a> {
    index: &'a Index,
    key: Key<'a>,
    leaf: u32,
    slot: usize,
}

impl Iterator for Found<'_> {
    type Item = Location;

    fn next(&mut self) -> Option<Location> {
        while self.leaf != NONE {
            let leaf = self.index.nodes.get(self.leaf);
            if self.slot < leaf.count() {
                let item = leaf.item(self.slot);
                if !item.looks_like(&self.key) {
                    self.leaf = NONE;
                    return None;
                }
                self.slot += 1;
                return Some(Location::from_units(item.at));
            }
            (self.leaf, self.slot) = (leaf.next(), 0);
        }
        None
    }
}

impl std::iter::FusedIterator for Found<'_> {}
