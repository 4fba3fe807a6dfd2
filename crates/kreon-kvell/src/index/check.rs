//! The invariants of an index, for tests.

use super::key::{Key, OwnKey};
use super::node::{Item, NONE};
use super::tree::Index;

impl Index {
    /// Panics if an invariant does not hold: entries ascend, separators separate, links and counts are right, every node
    /// is reached once, and none besides the only leaf of an empty index is empty.
    pub(super) fn check(&self) {
        let mut walk = Walk {
            index: self,
            reached: vec![false; self.nodes.count() as usize],
            last: vec![NONE; usize::from(self.levels)],
            entries: 0,
        };
        if self.levels == 0 {
            assert_eq!((self.root, self.nodes.count(), self.entries), (NONE, 0, 0));
            return;
        }
        assert!(self.entries > 0, "an index without entries has no nodes");
        if self.levels > 1 {
            assert!(self.nodes.get(self.root).count() > 1, "a root has children");
        }
        walk.node(self.root, self.levels - 1, None, None);
        assert!(
            walk.reached.iter().all(|reached| *reached),
            "every node is in the tree"
        );
        assert_eq!(walk.entries, self.entries);
        for last in walk.last {
            assert_eq!(self.nodes.get(last).next(), NONE);
        }
    }

    /// Mean fill of the leaves, 0 to 1.
    pub(super) fn leaf_fill(&self) -> f64 {
        let leaves = (0..self.nodes.count())
            .map(|node| self.nodes.get(node))
            .filter(|node| node.level() == 0);
        let (bytes, count) = leaves.fold((0, 0), |(bytes, count), leaf| {
            (bytes + leaf.used_bytes(), count + 1)
        });
        bytes as f64 / (count * self.nodes.node_bytes()) as f64
    }
}

struct Walk<'a> {
    index: &'a Index,
    reached: Vec<bool>,
    /// The node of each level that was reached last.
    last: Vec<u32>,
    entries: u64,
}

impl Walk<'_> {
    fn node(&mut self, number: u32, level: u8, low: Option<&Key<'_>>, high: Option<&Key<'_>>) {
        assert!(
            !std::mem::replace(&mut self.reached[number as usize], true),
            "a node is reached once"
        );
        let node = self.index.nodes.get(number);
        assert_eq!(node.level(), level);
        assert!(node.count() > 0, "a node has entries");
        assert!(node.used_bytes() <= self.index.nodes.node_bytes());
        let last = std::mem::replace(&mut self.last[usize::from(level)], number);
        assert_eq!(node.previous(), last, "nodes of a level are linked");
        if last != NONE {
            assert_eq!(
                self.index.nodes.get(last).next(),
                number,
                "nodes of a level are linked"
            );
        }
        let first = node.first_key();
        let keys: Vec<OwnKey> = (first..node.count())
            .map(|slot| own(node.item(slot)))
            .collect();
        for pair in keys.windows(2) {
            assert!(pair[0].key() < pair[1].key(), "{pair:?} ascend");
        }
        for (number, key) in keys.iter().enumerate() {
            let position = node.search(&key.key());
            assert!(
                position.exact && position.slot == first + number,
                "{key:?} is found"
            );
            assert!(
                low.is_none_or(|low| *low <= key.key()),
                "separators are not above"
            );
            assert!(
                high.is_none_or(|high| key.key() < *high),
                "separators are above"
            );
        }
        if level == 0 {
            self.entries += keys.len() as u64;
            return;
        }
        let mut child_low = low.copied();
        for slot in 0..node.count() {
            let next = keys.get(slot).map(OwnKey::key);
            self.node(
                node.child(slot),
                level - 1,
                child_low.as_ref(),
                next.as_ref().or(high),
            );
            child_low = next;
        }
    }
}

fn own(item: Item<'_>) -> OwnKey {
    let mut bytes = Vec::new();
    item.append_to(&mut bytes);
    OwnKey {
        bytes,
        truncated: item.truncated,
        at: item.at,
    }
}
