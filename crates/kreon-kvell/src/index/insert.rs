//! Inserts, and changes of a location in place.
//!
//! A full node first gives entries to a neighbour below the same parent, and only if both are full it is split: random
//! inserts leave nodes 4/5 full, where splits alone leave 2/3. Ascending inserts are split behind the last entry, so that
//! they leave full nodes.

use std::mem;

use super::gather::Gathered;
use super::key::{Key, OwnKey};
use super::location::Location;
use super::node::{HEADER_BYTES, NONE, SLOT_BYTES, payload_bytes};
use super::tree::{Index, Step};

/// What the parent of a node gets because of an insert: a separator and the node that it leads to.
struct Risen {
    separator: OwnKey,
    child: u32,
    /// The slot for it in the parent.
    slot: usize,
}

/// A place for an entry, in a node or between two.
struct Gap<'a> {
    node: u32,
    slot: usize,
    key: &'a Key<'a>,
    child: u32,
}

impl Index {
    /// Adds an entry, beside those that look alike. An entry that stands already is not added again: `false`.
    ///
    /// Of a whole key that stands with another location the caller wants [`Self::replace`].
    pub fn insert(&mut self, key: &[u8], at: Location) -> bool {
        let key = self.key(key, at.units());
        self.insert_key(&key)
    }

    /// Adds an entry: the first N bytes of a key, whether these are all, the place of the item. `false`, and nothing is
    /// changed, if it has more bytes, or stands already: a whole key has one entry.
    pub fn insert_entry(&mut self, bytes: &[u8], is_whole: bool, at: Location) -> bool {
        let is_again = is_whole && self.find(bytes).next().is_some();
        if is_again || bytes.len() > self.key_bytes_max() {
            return false;
        }
        self.insert_key(&Key {
            bytes,
            truncated: !is_whole,
            at: at.units(),
        })
    }

    fn insert_key(&mut self, key: &Key<'_>) -> bool {
        if self.levels == 0 {
            self.root = self.nodes.add(0);
            self.levels = 1;
        }
        let mut path = mem::take(&mut self.path);
        let leaf = self.descend(key, &mut path);
        let position = self.nodes.get(leaf).search(key);
        if !position.exact {
            self.insert_at(leaf, position.slot, key, &mut path);
            self.entries += 1;
            self.version += 1;
        }
        self.path = path;
        !position.exact
    }

    /// Gives the entry of a key another location: in place, without a change of any node's size, unless the entry's place
    /// among keys that look alike is then in another leaf. `false`, and nothing is changed, if there is no such entry.
    pub fn replace(&mut self, key: &[u8], old: Location, new: Location) -> bool {
        let (old, new) = (self.key(key, old.units()), self.key(key, new.units()));
        let (leaf, from) = self.lower_bound(&old);
        if !from.exact || old.at == new.at {
            return from.exact;
        }
        self.version += 1;
        if self.is_alone(leaf, from.slot, &old) {
            self.nodes.get_mut(leaf).set_at(from.slot, new.at);
            return true;
        }
        let (target, to) = self.lower_bound(&new);
        if leaf != target || to.exact {
            self.remove_key(&old);
            self.insert_key(&new);
            return true;
        }
        // All entries between the two places look alike: only their locations move.
        let (from, to) = (from.slot, to.slot);
        if from < to {
            for slot in from + 1..to {
                let at = self.nodes.get(leaf).at(slot);
                self.nodes.get_mut(leaf).set_at(slot - 1, at);
            }
            self.nodes.get_mut(leaf).set_at(to - 1, new.at);
        } else {
            for slot in (to..from).rev() {
                let at = self.nodes.get(leaf).at(slot);
                self.nodes.get_mut(leaf).set_at(slot + 1, at);
            }
            self.nodes.get_mut(leaf).set_at(to, new.at);
        }
        true
    }

    /// Whether the entries on both sides of a slot are in its leaf, and have other bytes than `key`, which it has.
    fn is_alone(&self, leaf: u32, slot: usize, key: &Key<'_>) -> bool {
        let leaf = self.nodes.get(leaf);
        (1..leaf.count().saturating_sub(1)).contains(&slot)
            && !leaf.item(slot - 1).looks_like(key)
            && !leaf.item(slot + 1).looks_like(key)
    }

    /// Inserts an entry into a leaf, and above whatever follows from it. `path` leads to the leaf.
    fn insert_at(&mut self, leaf: u32, slot: usize, key: &Key<'_>, path: &mut Vec<Step>) {
        let ascending = self.newest.0 == leaf && self.newest.1 + 1 == slot;
        self.newest = (leaf, slot);
        let gap = Gap {
            node: leaf,
            slot,
            key,
            child: NONE,
        };
        let mut parent = path.pop();
        let mut risen = self.fill(&gap, parent, ascending);
        while let Some(Risen {
            separator,
            child,
            slot,
        }) = risen
        {
            let Some(step) = parent else {
                self.grow(&separator, child);
                return;
            };
            parent = path.pop();
            let gap = Gap {
                node: step.node,
                slot,
                key: &separator.key(),
                child,
            };
            risen = self.fill(&gap, parent, false);
        }
    }

    /// A root above the root.
    fn grow(&mut self, separator: &OwnKey, child: u32) {
        let root = self.nodes.add(self.levels);
        let mut node = self.nodes.get_mut(root);
        // The prefix is all of the only key: the next one shortens it.
        node.set_prefix([&separator.bytes, &[]]);
        node.insert_suffix(0, [&[], &[]], &Key::FIRST, self.root);
        node.insert(1, &separator.key(), child);
        self.root = root;
        self.levels += 1;
    }

    /// Puts an entry into its gap, and makes room for it if it must.
    fn fill(&mut self, gap: &Gap<'_>, parent: Option<Step>, ascending: bool) -> Option<Risen> {
        if self
            .nodes
            .get_mut(gap.node)
            .insert(gap.slot, gap.key, gap.child)
        {
            return None;
        }
        let node = self.nodes.get(gap.node);
        let (count, level) = (node.count(), node.level());
        let mut all = Gathered::of_level(level, &[node]);
        all.push_node(node, 0..gap.slot);
        all.push(gap.key, gap.child);
        all.push_node(node, gap.slot..count);
        if all.node_bytes(0..all.count()) <= self.nodes.node_bytes() {
            // With another prefix it fits.
            all.write(0..all.count(), self.nodes.get_mut(gap.node));
            return None;
        }
        let ascending = ascending || gap.slot == count && node.next() == NONE;
        if let Some(cut) = ascending.then(|| self.cut_behind(&all, gap.slot)).flatten() {
            return Some(self.split(gap.node, &all, cut, parent));
        }
        if let Some(parent) = parent
            && let Some(risen) = self.share(gap, parent)
        {
            return Some(risen);
        }
        let (cut, _) = all.cut();
        Some(self.split(gap.node, &all, cut, parent))
    }

    /// Where a full node is cut when further entries are expected behind a new one: behind it or before it, so that the
    /// next ones fill up the left node, or a right one of their own.
    fn cut_behind(&self, all: &Gathered, slot: usize) -> Option<usize> {
        let (count, node_bytes) = (all.count(), self.nodes.node_bytes());
        [slot + 1, slot].into_iter().find(|cut| {
            (1..count).contains(cut)
                && all.node_bytes(0..*cut) <= node_bytes
                && all.node_bytes(*cut..count) <= node_bytes
        })
    }

    /// Deals the entries of a node out to it and to a new one behind it.
    fn split(&mut self, left: u32, all: &Gathered, cut: usize, parent: Option<Step>) -> Risen {
        let right = self.nodes.add(self.nodes.get(left).level());
        let next = self.nodes.get(left).next();
        self.nodes.get_mut(left).set_next(right);
        self.nodes.get_mut(right).set_previous(left);
        self.nodes.get_mut(right).set_next(next);
        if next != NONE {
            self.nodes.get_mut(next).set_previous(right);
        }
        all.write(0..cut, self.nodes.get_mut(left));
        all.write(cut..all.count(), self.nodes.get_mut(right));
        if self.newest.0 == left && self.newest.1 >= cut {
            self.newest = (right, self.newest.1 - cut);
        }
        Risen {
            separator: all.separator(cut),
            child: right,
            slot: parent.map_or(1, |step| step.slot + 1),
        }
    }

    /// Shares the entries of a full node and the new one with the emptier neighbour, if that leaves room in both. The
    /// parent loses the separator between the two, and gets another one.
    fn share(&mut self, gap: &Gap<'_>, parent: Step) -> Option<Risen> {
        let above = self.nodes.get(parent.node);
        let node = self.nodes.get(gap.node);
        let before = (parent.slot > 0).then(|| parent.slot - 1);
        let behind = (parent.slot + 1 < above.count()).then(|| parent.slot + 1);
        let emptiest = |slot: &usize| self.nodes.get(above.child(*slot)).used_bytes();
        let slot = before.into_iter().chain(behind).min_by_key(emptiest)?;
        let other = self.nodes.get(above.child(slot));

        let level = node.level();
        let entry = SLOT_BYTES
            + payload_bytes(level)
            + gap.key.bytes.len().saturating_sub(node.prefix().len());
        let room = self.shared_bytes_max();
        if node.used_bytes() + entry + other.used_bytes() > 2 * room {
            return None;
        }
        let right_slot = slot.max(parent.slot);
        let (left, right) = (above.child(right_slot - 1), above.child(right_slot));
        let mut all = Gathered::of_level(level, &[node, other]);
        for number in [left, right] {
            let node = self.nodes.get(number);
            let mut start = 0;
            if number == right && level > 0 {
                all.push_separator(above.item(right_slot), node.child(0));
                start = 1;
            }
            if number == gap.node {
                all.push_node(node, start..gap.slot);
                all.push(gap.key, gap.child);
                start = gap.slot;
            }
            all.push_node(node, start..node.count());
        }
        let (cut, larger) = all.cut();
        if larger > room {
            return None;
        }
        all.write(0..cut, self.nodes.get_mut(left));
        all.write(cut..all.count(), self.nodes.get_mut(right));
        self.nodes.get_mut(parent.node).remove(right_slot);
        Some(Risen {
            separator: all.separator(cut),
            child: right,
            slot: right_slot,
        })
    }

    /// Up to here two nodes are filled when they share: with less room, the next share would follow too soon.
    fn shared_bytes_max(&self) -> usize {
        let node_bytes = self.nodes.node_bytes();
        node_bytes - (node_bytes - HEADER_BYTES) / 16
    }
}
