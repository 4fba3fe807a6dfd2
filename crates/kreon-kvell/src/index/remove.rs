//! Removals. A node that is less than a quarter full is merged with a neighbour below the same parent, if both then leave
//! an eighth of the node free; a node without entries goes in any case.

use std::mem;

use super::gather::Gathered;
use super::key::{Key, OwnKey};
use super::location::Location;
use super::node::{HEADER_BYTES, NONE, Node};
use super::tree::{Index, Step};

impl Index {
    /// Removes the entry of a key with a location. `false`, and nothing is changed, if there is no such entry.
    pub fn remove(&mut self, key: &[u8], at: Location) -> bool {
        let key = self.key(key, at.units());
        self.remove_key(&key)
    }

    pub(super) fn remove_key(&mut self, key: &Key<'_>) -> bool {
        if self.levels == 0 {
            return false;
        }
        let mut path = mem::take(&mut self.path);
        let leaf = self.descend(key, &mut path);
        let position = self.nodes.get(leaf).search(key);
        if position.exact {
            self.nodes.get_mut(leaf).remove(position.slot);
            self.entries -= 1;
            self.version += 1;
            self.newest = (NONE, 0);
            self.settle(leaf, &mut path);
        }
        self.path = path;
        position.exact
    }

    /// Merges what has become too empty, from a node upward. `path` leads to the node.
    fn settle(&mut self, mut node: u32, path: &mut Vec<Step>) {
        let mut freed = Vec::new();
        while let Some(parent) = path.pop() {
            let left = self.nodes.get(node);
            let filled = left.count() > 0 && left.used_bytes() >= self.nodes.node_bytes() / 4;
            if filled || !self.absorb(node, parent, &mut freed) {
                break;
            }
            node = parent.node;
        }
        while self.levels > 1 && self.nodes.get(self.root).count() == 1 {
            freed.push(self.root);
            self.root = self.nodes.get(self.root).child(0);
            self.levels -= 1;
        }
        if self.levels == 1 && self.nodes.get(self.root).count() == 0 {
            freed.push(self.root);
            (self.root, self.levels) = (NONE, 0);
        }
        self.vacate(freed);
    }

    /// Takes a node out of the tree, or one of its neighbours after a merge: `true`, and the parent has an entry less.
    fn absorb(&mut self, node: u32, parent: Step, freed: &mut Vec<u32>) -> bool {
        let above = self.nodes.get(parent.node);
        if self.nodes.get(node).count() == 0 {
            if parent.slot == 0 && above.count() > 1 {
                // The first entry has no key: the second child takes it over.
                let second = above.child(1);
                self.nodes.get_mut(parent.node).set_child(0, second);
                self.nodes.get_mut(parent.node).remove(1);
            } else {
                self.nodes.get_mut(parent.node).remove(parent.slot);
            }
            self.unlink(node);
            freed.push(node);
            return true;
        }
        let rights = [parent.slot, parent.slot + 1];
        for right_slot in rights
            .into_iter()
            .filter(|right| (1..above.count()).contains(right))
        {
            let Some(all) = self.merged(parent.node, right_slot) else {
                continue;
            };
            let above = self.nodes.get(parent.node);
            let (left, right) = (above.child(right_slot - 1), above.child(right_slot));
            all.write(0..all.count(), self.nodes.get_mut(left));
            self.nodes.get_mut(parent.node).remove(right_slot);
            self.unlink(right);
            freed.push(right);
            return true;
        }
        false
    }

    /// The entries of a child and of the one before it, if one node can hold them.
    fn merged(&self, parent: u32, right_slot: usize) -> Option<Gathered> {
        let above = self.nodes.get(parent);
        let (left, right) = (
            self.nodes.get(above.child(right_slot - 1)),
            self.nodes.get(above.child(right_slot)),
        );
        let room = self.nodes.node_bytes() / 8 * 7;
        if merged_bytes(left, right) > room {
            return None;
        }
        let level = left.level();
        let mut all = Gathered::of_level(level, &[left, right]);
        all.push_node(left, 0..left.count());
        let mut start = 0;
        if level > 0 {
            all.push_separator(above.item(right_slot), right.child(0));
            start = 1;
        }
        all.push_node(right, start..right.count());
        (all.node_bytes(0..all.count()) <= room).then_some(all)
    }

    fn unlink(&mut self, node: u32) {
        let (previous, next) = (self.nodes.get(node).previous(), self.nodes.get(node).next());
        if previous != NONE {
            self.nodes.get_mut(previous).set_next(next);
        }
        if next != NONE {
            self.nodes.get_mut(next).set_previous(previous);
        }
    }

    /// Gives up nodes that the tree does not reach. The last nodes move to their places, so that no hole stays.
    fn vacate(&mut self, mut freed: Vec<u32>) {
        // From the last on: what moves is never itself given up.
        freed.sort_unstable_by(|a, b| b.cmp(a));
        for hole in freed {
            let last = self.nodes.count() - 1;
            if hole != last {
                self.redirect(last, hole);
            }
            self.nodes.swap_remove(hole);
        }
    }

    /// Makes all that refers to a node refer to another number.
    fn redirect(&mut self, from: u32, to: u32) {
        let node = self.nodes.get(from);
        let (previous, next, level) = (node.previous(), node.next(), node.level());
        // Any key below a node leads to it.
        let mut leaf = node;
        while leaf.level() > 0 {
            leaf = self.nodes.get(leaf.child(0));
        }
        let first = leaf.item(0);
        let mut key = OwnKey {
            bytes: Vec::new(),
            truncated: first.truncated,
            at: first.at,
        };
        first.append_to(&mut key.bytes);
        if previous != NONE {
            self.nodes.get_mut(previous).set_next(to);
        }
        if next != NONE {
            self.nodes.get_mut(next).set_previous(to);
        }
        if self.root == from {
            self.root = to;
            return;
        }
        let mut parent = self.root;
        for _ in level + 1..self.levels - 1 {
            let node = self.nodes.get(parent);
            parent = node.child(node.child_slot(&key.key()));
        }
        let slot = self.nodes.get(parent).child_slot(&key.key());
        debug_assert_eq!(self.nodes.get(parent).child(slot), from);
        self.nodes.get_mut(parent).set_child(slot, to);
    }
}

/// At least the bytes of a node with the entries of both, if no prefix is longer than need be.
fn merged_bytes(left: Node<'_>, right: Node<'_>) -> usize {
    let own = |node: Node<'_>| node.used_bytes() - HEADER_BYTES - node.prefix().len();
    HEADER_BYTES + own(left) + own(right)
}
