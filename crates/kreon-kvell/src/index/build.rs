//! An index of entries that come in their order: node by node from the left, the leaves first, with no search for any key.

use std::mem;

use super::gather::Gathered;
use super::key::{Key, OwnKey};
use super::location::Location;
use super::node::{HEAD_BYTES, HEADER_BYTES, NONE, SLOT_BYTES, payload_bytes};
use super::tree::Index;

/// Builds an index of entries in ascending order. A node is filled to 7/8: the first inserts beside its entries find room, and
/// it takes a little less memory than inserts in random order leave.
pub struct IndexBuilder {
    /// What has come out: nodes that are complete.
    index: Index,
    /// The node of each level that is being filled, leaves first.
    filling: Vec<Filling>,
}

/// What becomes the next node of a level.
struct Filling {
    level: u8,
    entries: Gathered,
    /// What the keys begin with.
    prefix: Vec<u8>,
    /// Bytes of a node with the entries.
    node_bytes: usize,
    /// What leads to the node: above the entries of the one before.
    separator: OwnKey,
    /// The node before.
    previous: u32,
}

impl IndexBuilder {
    /// Of an index of the first `key_bytes_max` bytes of each key, as [`Index::new`].
    pub fn new(key_bytes_max: usize) -> Self {
        Self::of(Index::new(key_bytes_max))
    }

    pub(super) fn of(index: Index) -> Self {
        Self {
            index,
            filling: Vec::new(),
        }
    }

    /// N: how many bytes of a key stand in the index at most.
    pub fn key_bytes_max(&self) -> usize {
        self.index.key_bytes_max()
    }

    /// Heap memory in bytes of the nodes that are complete.
    pub fn memory_bytes(&self) -> usize {
        self.index.memory_bytes()
    }

    /// Adds an entry: the first N bytes of a key, whether these are all, the place of the item. `false`, and nothing is
    /// changed, if it has more bytes, or does not belong behind all others: a whole key comes once.
    pub fn push(&mut self, bytes: &[u8], is_whole: bool, at: Location) -> bool {
        let key = Key {
            bytes,
            truncated: !is_whole,
            at: at.units(),
        };
        if !self.is_next(&key) {
            return false;
        }
        self.index.entries += 1;
        self.add(0, &key, NONE);
        true
    }

    fn is_next(&self, key: &Key<'_>) -> bool {
        let last = self.filling.first().and_then(|leaf| leaf.entries.last());
        let is_behind = last.is_none_or(|last| {
            let is_again = !key.truncated && !last.truncated && last.bytes == key.bytes;
            last < *key && !is_again
        });
        is_behind && key.bytes.len() <= self.key_bytes_max()
    }

    /// Adds an entry to a level, and above whatever follows from it.
    fn add(&mut self, level: u8, key: &Key<'_>, child: u32) {
        let (mut above, mut node);
        let (mut level, mut key, mut child) = (level, *key, child);
        loop {
            if self.filling.len() == usize::from(level) {
                self.filling.push(Filling::new(level));
            }
            let filling = &mut self.filling[usize::from(level)];
            filling.push(&key, child);
            if !filling.is_over(self.index.nodes.node_bytes()) {
                return;
            }
            (above, node) = filling.end_before_last(&mut self.index);
            (level, key, child) = (level + 1, above.key(), node);
        }
    }

    /// The index.
    pub fn finish(mut self) -> Index {
        let mut level = 0;
        while let Some(filling) = self.filling.get_mut(usize::from(level)) {
            let is_root = filling.previous == NONE;
            let (separator, node) = filling.end(&mut self.index);
            level += 1;
            if is_root {
                (self.index.root, self.index.levels) = (node, level);
                break;
            }
            self.add(level, &separator.key(), node);
        }
        self.index
    }
}

impl Filling {
    fn new(level: u8) -> Self {
        Self {
            level,
            entries: Gathered::of_level(level, &[]),
            prefix: Vec::new(),
            node_bytes: HEADER_BYTES,
            separator: OwnKey::first(),
            previous: NONE,
        }
    }

    fn push(&mut self, key: &Key<'_>, child: u32) {
        self.entries.push(key, child);
        let count = self.entries.count();
        // The first entry of an inner node keeps no key.
        let keyed = count - usize::from(self.level > 0);
        if keyed > 1 && key.bytes.starts_with(&self.prefix) {
            let rest = key.bytes.len() - self.prefix.len();
            self.node_bytes +=
                SLOT_BYTES + payload_bytes(self.level) + rest.saturating_sub(HEAD_BYTES);
            return;
        }
        match keyed {
            0 => {}
            1 => self.prefix.extend_from_slice(key.bytes),
            _ => {
                let common = super::key::common(&self.prefix, key.bytes);
                self.prefix.truncate(common);
            }
        }
        self.node_bytes = self.entries.node_bytes(0..count);
    }

    /// Whether the last entry is too much. Of the others there are two at least: three of the longest fit into a node.
    fn is_over(&self, bytes: usize) -> bool {
        let is_full = self.node_bytes > bytes - bytes / 8 && self.entries.count() > 2;
        is_full || self.node_bytes > bytes
    }

    /// Makes all entries but the last a node of `index`, of which the last begins the next one. Returns what leads to the
    /// node, and its number.
    fn end_before_last(&mut self, index: &mut Index) -> (OwnKey, u32) {
        let cut = self.entries.count() - 1;
        let node = self.write(cut, index);
        let separator = mem::replace(&mut self.separator, self.entries.separator(cut));
        self.entries.keep_last();
        self.prefix.clear();
        if self.level == 0
            && let Some(first) = self.entries.last()
        {
            self.prefix.extend_from_slice(first.bytes);
        }
        self.node_bytes = self.entries.node_bytes(0..1);
        (separator, node)
    }

    /// Makes all entries the last node of the level.
    fn end(&mut self, index: &mut Index) -> (OwnKey, u32) {
        let node = self.write(self.entries.count(), index);
        (mem::replace(&mut self.separator, OwnKey::first()), node)
    }

    fn write(&mut self, count: usize, index: &mut Index) -> u32 {
        let node = index.nodes.add(self.level);
        let previous = mem::replace(&mut self.previous, node);
        if previous != NONE {
            index.nodes.get_mut(previous).set_next(node);
            index.nodes.get_mut(node).set_previous(previous);
        }
        self.entries.write(0..count, index.nodes.get_mut(node));
        node
    }
}
