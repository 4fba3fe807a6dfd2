//! The B+-tree: descents concurrent with writers, and splits.
//!
//! A descent holds no latch. It reads a child's version and then validates the parent, which proves that the child was
//! the right one when its version was read (Bayer's protocols with optimism instead of locks, `Kreon 3.2.6`). A writer
//! takes the latch of the one leaf that it changes. An insert splits each full node on its way down at once, with the
//! latches of that node and its parent held; the parent has room, as no full node is passed. Nodes are never merged or
//! freed, so a descent that lost a race still stands on a valid node.

use kreon_base::sync::{AtomicUsize, Ordering::Relaxed};

use std::sync::Arc;

use crate::arena::{Arena, AtomicRef, Pool, Ref};
use crate::latch::{Backoff, Stamp};
use crate::node::{Node, Slot};
use crate::record::Record;

/// The tree and the arena that holds it.
pub(crate) struct Tree {
    pub arena: Arena,
    root: AtomicRef<Node>,
    len: Len,
}

/// On a cache line of its own, so that counting does not slow down readers.
#[repr(align(128))]
struct Len(AtomicUsize);

/// Destination of a descent.
#[derive(Clone, Copy)]
pub(crate) enum Way<'k> {
    /// To the first leaf.
    First,
    /// To the last leaf.
    Last,
    /// To the leaf that has the key or would get it.
    To(&'k [u8]),
    /// To the leaf with the keys just below this one.
    Before(&'k [u8]),
}

/// A node on a descent, and its version when it was reached.
struct VisitedNode<'a> {
    node: &'a Node,
    stamp: Stamp,
    own: Ref<Node>,
}

/// An interrupted descent: the parent of the key's leaf, with room, and the leaf, which is being prefetched and was not
/// read yet.
pub(crate) struct PrefetchedLeaf<'a> {
    parent: VisitedNode<'a>,
    leaf: Ref<Node>,
}

/// Another thread changed a node on the way; the descent must start again.
struct Retry;

impl Tree {
    /// An empty tree: one empty leaf.
    pub(crate) fn new(pool: Arc<Pool>) -> Self {
        let arena = Arena::new(pool);
        let root = Node::put(&arena, 0);
        Self {
            arena,
            root: AtomicRef::new(Some(root)),
            len: Len(AtomicUsize::new(0)),
        }
    }

    /// Number of keys.
    pub(crate) fn len(&self) -> usize {
        self.len.0.load(Relaxed)
    }

    /// The result of `read` for the leaf that `way` leads to, consistent at one moment. `read` is called again if the
    /// leaf changed meanwhile.
    pub(crate) fn read_leaf<R>(&self, way: Way<'_>, mut read: impl FnMut(&Node) -> R) -> R {
        retrying(|| {
            let mut at = self.root()?;
            while at.node.level > 0 {
                at = self.child(&at, way)?;
            }
            let result = read(at.node);
            let valid = at.node.latch.validate(at.stamp);
            if valid { Ok(result) } else { Err(Retry) }
        })
    }

    /// Descends to the parent of `key`'s leaf. `None` if the tree is too small to gain, or another thread or a full
    /// node is in the way.
    pub(crate) fn ahead(&self, key: &[u8]) -> Option<PrefetchedLeaf<'_>> {
        let mut at = self.root().ok()?;
        while at.node.level > 1 {
            if at.node.is_full() {
                return None;
            }
            at = self.child(&at, Way::To(key)).ok()?;
        }
        if at.node.level == 0 || at.node.is_full() {
            return None;
        }
        let leaf = self.child_ref(&at, Way::To(key))?;
        Some(PrefetchedLeaf { parent: at, leaf })
    }

    /// The record of `key`.
    pub(crate) fn find(
        &self,
        key: &[u8],
        ahead: Option<PrefetchedLeaf<'_>>,
    ) -> Option<Ref<Record>> {
        let leaf = ahead.and_then(|ahead| self.visit(&ahead.parent, ahead.leaf).ok());
        let found = leaf.and_then(|leaf| {
            let slot = leaf.node.search(&self.arena, key);
            leaf.node.latch.validate(leaf.stamp).then_some(slot)
        });
        let slot = found
            .unwrap_or_else(|| self.read_leaf(Way::To(key), |leaf| leaf.search(&self.arena, key)));
        match slot {
            Slot::Found(_, record) => Some(record),
            Slot::Absent(_) => None,
        }
    }

    /// The record of `key` if it exists; otherwise creates `record`, inserts it and returns `None`.
    pub(crate) fn find_or_insert(
        &self,
        key: &[u8],
        mut ahead: Option<PrefetchedLeaf<'_>>,
        record: impl Fn() -> Ref<Record>,
    ) -> Option<Ref<Record>> {
        let mut made = None;
        retrying(|| {
            let leaf = match ahead.take() {
                Some(ahead) => self.visit(&ahead.parent, ahead.leaf)?,
                None => self.leaf_with_room(key)?,
            };
            let slot = leaf.node.search(&self.arena, key);
            let is_full = leaf.node.is_full();
            if !leaf.node.latch.validate(leaf.stamp) {
                return Err(Retry);
            }
            let at = match slot {
                Slot::Found(_, record) => return Ok(Some(record)),
                // Possible only after `ahead`; the descent from the root will split the leaf.
                Slot::Absent(_) if is_full => return Err(Retry),
                Slot::Absent(at) => at,
            };
            let record = *made.get_or_insert_with(&record);
            let held = leaf.node.latch.hold(leaf.stamp).ok_or(Retry)?;
            leaf.node.insert(&self.arena, at, key, record);
            drop(held);
            self.len.0.fetch_add(1, Relaxed);
            Ok(None)
        })
    }

    /// The leaf for `key`, not validated yet; splits full nodes on the way. (A full leaf is split even if it has the
    /// key already. This is rare, and the room is used later.)
    fn leaf_with_room(&self, key: &[u8]) -> Result<VisitedNode<'_>, Retry> {
        let mut parent = None;
        let mut at = self.root()?;
        loop {
            if at.node.is_full() {
                self.split(parent.as_ref(), &at, key)?;
                return Err(Retry);
            }
            if at.node.level == 0 {
                return Ok(at);
            }
            let child = self.child(&at, Way::To(key))?;
            parent = Some(at);
            at = child;
        }
    }

    fn root(&self) -> Result<VisitedNode<'_>, Retry> {
        let own = self.root.load().ok_or(Retry)?;
        let node = self.arena.get(own);
        let stamp = node.latch.read();
        // A root that was split before its version was read is no longer the root.
        if self.root.load() != Some(own) {
            return Err(Retry);
        }
        Ok(VisitedNode { node, stamp, own })
    }

    fn child(&self, parent: &VisitedNode<'_>, way: Way<'_>) -> Result<VisitedNode<'_>, Retry> {
        let own = self.child_ref(parent, way).ok_or(Retry)?;
        self.visit(parent, own)
    }

    /// The child `own` of `parent`, not validated yet.
    fn visit(&self, parent: &VisitedNode<'_>, own: Ref<Node>) -> Result<VisitedNode<'_>, Retry> {
        let node = self.arena.get(own);
        let stamp = node.latch.read();
        // If the parent has not changed since it was searched, the child is the right one.
        if !parent.node.latch.validate(parent.stamp) {
            return Err(Retry);
        }
        Ok(VisitedNode { node, stamp, own })
    }

    /// The child of `parent` on the way, not validated; prefetches it.
    fn child_ref(&self, parent: &VisitedNode<'_>, way: Way<'_>) -> Option<Ref<Node>> {
        let place = match way {
            Way::First => 0,
            Way::Last => parent.node.count(),
            Way::Before(key) => parent.node.search(&self.arena, key).lower(),
            Way::To(key) => match parent.node.search(&self.arena, key) {
                Slot::Found(at, _) => at + 1,
                Slot::Absent(at) => at,
            },
        };
        let own = parent.node.child(&self.arena, place)?;
        // The search will read several of its cache lines, each dependent on the one before.
        self.arena.prefetch(own, size_of::<Node>());
        Some(own)
    }

    /// Splits `full` if it has not changed since it was reached. `parent` has room; `None`: `full` is the root, and the
    /// tree grows by a level.
    fn split(
        &self,
        parent: Option<&VisitedNode<'_>>,
        full: &VisitedNode<'_>,
        key: &[u8],
    ) -> Result<(), Retry> {
        let held_parent = match parent {
            Some(parent) => Some(parent.node.latch.hold(parent.stamp).ok_or(Retry)?),
            None => None,
        };
        let held = full.node.latch.hold(full.stamp).ok_or(Retry)?;
        let (pivot, right) = self.halve(full.node, key).ok_or(Retry)?;
        match parent {
            Some(parent) => {
                let slot = parent.node.search(&self.arena, self.arena.first(pivot));
                let at = slot.lower();
                parent.node.insert_child(&self.arena, at, pivot, right);
            }
            None => {
                let root = Node::put(&self.arena, full.node.level + 1);
                let node = self.arena.get(root);
                node.set_child(&self.arena, 0, Some(full.own));
                node.insert_child(&self.arena, 0, pivot, right);
                self.root.store(Some(root));
            }
        }
        drop(held);
        drop(held_parent);
        Ok(())
    }

    /// Moves the upper half of `full`, whose latch is held, to a new node; returns the pivot between them and the new
    /// node.
    fn halve(&self, full: &Node, key: &[u8]) -> Option<(Ref<Record>, Ref<Node>)> {
        let arena = &self.arena;
        let count = full.count();
        let appends = full.high().is_none() && full.search(arena, key).lower() == count;
        // Keys inserted in ascending order leave full nodes behind.
        let at = if appends { count - 2 } else { count / 2 };
        let pivot = full.record(at)?;
        let right_ref = Node::put(arena, full.level);
        let right = arena.get(right_ref);
        // The pivot of an index node moves up: its right child becomes the first child of the right node.
        let from = if full.level > 0 { at + 1 } else { at };
        full.move_entries(arena, at, from, right);
        right.set_fences(Some(pivot), full.high());
        full.set_fences(full.low(), Some(pivot));
        full.refit(arena);
        right.refit(arena);
        Some((pivot, right_ref))
    }
}

/// Repeats `attempt` until no other thread interferes.
fn retrying<R>(mut attempt: impl FnMut() -> Result<R, Retry>) -> R {
    let mut pause = Backoff::default();
    loop {
        match attempt() {
            Ok(done) => return done,
            Err(Retry) => pause.wait(),
        }
    }
}
