//! Entries of neighbouring nodes in a row, dealt out again.

use std::ops::Range;

use super::edit::NodeMut;
use super::key::{Key, OwnKey, common};
use super::node::{HEAD_BYTES, HEADER_BYTES, Item, NONE, Node, SLOT_BYTES, payload_bytes};

/// Entries in order: copied from up to two nodes of one level, and one new entry among them, or all of them new.
pub(super) struct Gathered {
    level: u8,
    /// Prefix and suffix of each entry; entries of one node share their prefix.
    bytes: Vec<u8>,
    entries: Vec<GatheredEntry>,
}

struct GatheredEntry {
    prefix: Range<usize>,
    suffix: Range<usize>,
    truncated: bool,
    at: u64,
    child: u32,
}

impl GatheredEntry {
    fn key_bytes(&self) -> usize {
        self.prefix.len() + self.suffix.len()
    }
}

impl Gathered {
    /// Nothing yet, with room for the entries of the nodes and one more.
    pub(super) fn of_level(level: u8, nodes: &[Node<'_>]) -> Self {
        let entries = nodes.iter().map(|node| node.count()).sum::<usize>() + 1;
        let bytes = nodes.iter().map(|node| node.used_bytes()).sum();
        Self {
            level,
            bytes: Vec::with_capacity(bytes),
            entries: Vec::with_capacity(entries),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.entries.len()
    }

    /// Appends entries of a node.
    pub(super) fn push_node(&mut self, node: Node<'_>, slots: Range<usize>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(node.prefix());
        let prefix = start..self.bytes.len();
        for slot in slots {
            let item = node.item(slot);
            let start = self.bytes.len();
            self.bytes.extend_from_slice(item.head);
            self.bytes.extend_from_slice(item.rest);
            self.entries.push(GatheredEntry {
                prefix: prefix.clone(),
                suffix: start..self.bytes.len(),
                truncated: item.truncated,
                at: item.at,
                child: item.child,
            });
        }
    }

    /// Appends an entry.
    pub(super) fn push(&mut self, key: &Key<'_>, child: u32) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key.bytes);
        self.push_appended(start, key.truncated, key.at, child);
    }

    /// The last entry, which came by [`Self::push`].
    pub(super) fn last(&self) -> Option<Key<'_>> {
        let last = self.entries.last()?;
        Some(Key {
            bytes: &self.bytes[last.suffix.clone()],
            truncated: last.truncated,
            at: last.at,
        })
    }

    /// Forgets all entries but the last, which came by [`Self::push`].
    pub(super) fn keep_last(&mut self) {
        let Some(mut last) = self.entries.pop() else {
            return;
        };
        let length = last.suffix.len();
        self.bytes.copy_within(last.suffix, 0);
        self.bytes.truncate(length);
        (last.prefix, last.suffix) = (0..0, 0..length);
        self.entries.clear();
        self.entries.push(last);
    }

    /// Appends a separator as the first entry of the node it leads to.
    pub(super) fn push_separator(&mut self, separator: Item<'_>, child: u32) {
        let start = self.bytes.len();
        separator.append_to(&mut self.bytes);
        self.push_appended(start, separator.truncated, separator.at, child);
    }

    fn push_appended(&mut self, start: usize, truncated: bool, at: u64, child: u32) {
        self.entries.push(GatheredEntry {
            prefix: start..start,
            suffix: start..self.bytes.len(),
            truncated,
            at,
            child: if self.level == 0 { NONE } else { child },
        });
    }

    fn prefix_and_suffix(&self, entry: &GatheredEntry) -> [&[u8]; 2] {
        [
            &self.bytes[entry.prefix.clone()],
            &self.bytes[entry.suffix.clone()],
        ]
    }

    /// Length of the common prefix of two entries.
    fn common(&self, a: usize, b: usize) -> usize {
        let (a, b) = (&self.entries[a], &self.entries[b]);
        let ([a_prefix, a_suffix], [b_prefix, b_suffix]) =
            (self.prefix_and_suffix(a), self.prefix_and_suffix(b));
        if a.prefix == b.prefix {
            return a_prefix.len() + common(a_suffix, b_suffix);
        }
        let (a, b) = (
            a_prefix.iter().chain(a_suffix),
            b_prefix.iter().chain(b_suffix),
        );
        a.zip(b).take_while(|(a, b)| a == b).count()
    }

    /// The entries of a node whose keys it keeps: in an inner node, all but the first.
    fn keyed(&self, range: &Range<usize>) -> Range<usize> {
        let first = range.start + usize::from(self.level > 0);
        first.min(range.end)..range.end
    }

    /// Length of the common prefix of the keys that a node with these entries keeps.
    fn prefix(&self, keyed: &Range<usize>) -> usize {
        if keyed.is_empty() {
            0
        } else {
            self.common(keyed.start, keyed.end - 1)
        }
    }

    /// Bytes of a node with these entries. (It grows with every entry more, at either end.)
    pub(super) fn node_bytes(&self, range: Range<usize>) -> usize {
        let keyed = self.keyed(&range);
        let prefix = self.prefix(&keyed);
        let fixed = SLOT_BYTES + payload_bytes(self.level);
        let keys = self.entries[keyed].iter();
        let rests: usize = keys
            .map(|entry| entry.key_bytes().saturating_sub(prefix + HEAD_BYTES))
            .sum();
        HEADER_BYTES + prefix + range.len() * fixed + rests
    }

    /// Where to cut so that the larger of two nodes is smallest, and the bytes of that one. There are two entries at
    /// least.
    pub(super) fn cut(&self) -> (usize, usize) {
        let count = self.count();
        let sides = |cut: usize| (self.node_bytes(0..cut), self.node_bytes(cut..count));
        // The left side grows and the right side shrinks with the cut: the best is next to where they cross.
        let (mut low, mut high) = (1, count - 1);
        while low < high {
            let middle = low.midpoint(high);
            let (left, right) = sides(middle);
            if left < right {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let larger = |cut: usize| {
            let (left, right) = sides(cut);
            left.max(right)
        };
        let here = larger(low);
        if low > 1 {
            let before = larger(low - 1);
            if before < here {
                return (low - 1, before);
            }
        }
        (low, here)
    }

    /// A key above the entry before `cut` and not above the one behind; of leaves the shortest (suffix truncation, as in
    /// prefix B-trees).
    pub(super) fn separator(&self, cut: usize) -> OwnKey {
        let entry = &self.entries[cut];
        let mut bytes = self.prefix_and_suffix(entry).concat();
        let exact = |bytes| OwnKey {
            bytes,
            truncated: entry.truncated,
            at: entry.at,
        };
        if self.level > 0 {
            return exact(bytes);
        }
        let before = &self.entries[cut - 1];
        let common = self.common(cut - 1, cut);
        if common < bytes.len() {
            bytes.truncate(common + 1);
            return OwnKey {
                bytes,
                truncated: false,
                at: 0,
            };
        }
        if before.truncated != entry.truncated {
            return OwnKey {
                bytes,
                truncated: true,
                at: 0,
            };
        }
        exact(bytes)
    }

    /// Makes entries the whole content of a node; its links stay. They fit, by [`Self::node_bytes`].
    pub(super) fn write(&self, range: Range<usize>, mut node: NodeMut<'_>) {
        node.clear(self.level);
        let keyed = self.keyed(&range);
        let prefix = self.prefix(&keyed);
        if let Some(first) = self.entries[keyed.clone()].first() {
            let [front, back] = self.prefix_and_suffix(first);
            let front = &front[..front.len().min(prefix)];
            node.set_prefix([front, &back[..prefix - front.len()]]);
        }
        for (slot, entry) in self.entries[range.clone()].iter().enumerate() {
            let [front, back] = self.prefix_and_suffix(entry);
            let behind = match prefix.checked_sub(front.len()) {
                _ if range.start + slot < keyed.start => [&[][..], &[]],
                Some(more) => [&[][..], &back[more..]],
                None => [&front[prefix..], back],
            };
            let key = Key {
                bytes: &[],
                truncated: entry.truncated,
                at: entry.at,
            };
            let fits = node.insert_suffix(slot, behind, &key, entry.child);
            debug_assert!(fits);
        }
    }
}
