//! The protocols against which the optimistic latches were measured: the same nodes, records and memory under locks.
//!
//! - [`Root::Locked`]: lock coupling. Readers take read locks; writers take read locks down to a write lock on the
//!   leaf. If a node is full, a second descent with write locks splits it (the first two protocols of Bayer and
//!   Schkolnick).
//! - [`Root::Optimistic`]: the same below the root, which is not locked. It is replaced by a changed copy, and a thread
//!   that has locked a child checks that its parent is still the root (`Kreon 3.2.6`).

use std::sync::Arc;

use kreon_base::sync::{AtomicUsize, Ordering::Relaxed};
use parking_lot::Mutex;

use crate::arena::{Arena, AtomicRef, Pool, Ref};
use crate::latch::Backoff;
use crate::node::{Node, Slot};
use crate::record::Record;

/// How the root is protected.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// Locked like all nodes.
    Locked,
    /// Replaced by copies.
    Optimistic,
}

/// The tree and the arena that holds it.
pub struct LockedTree {
    pub arena: Arena,
    root: AtomicRef<Node>,
    kind: Root,
    /// Held while an optimistic root is replaced.
    root_change: Mutex<()>,
    len: AtomicUsize,
}

/// How a node is locked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Free,
    Read,
    Write,
}

/// A node, locked until dropped.
struct Locked<'a> {
    node: &'a Node,
    own: Ref<Node>,
    mode: Mode,
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        match self.mode {
            Mode::Free => {}
            Mode::Read => self.node.latch.end_read(),
            Mode::Write => self.node.latch.end_write(),
        }
    }
}

impl LockedTree {
    pub fn new(kind: Root, pool: Arc<Pool>) -> Self {
        let arena = Arena::new(pool);
        let root = Node::put(&arena, 0);
        Self {
            arena,
            root: AtomicRef::new(Some(root)),
            kind,
            root_change: Mutex::new(()),
            len: AtomicUsize::new(0),
        }
    }

    /// The record of `key`.
    pub fn find(&self, key: &[u8]) -> Option<Ref<Record>> {
        let leaf = self.leaf(key, Mode::Read);
        match leaf.node.search(&self.arena, key) {
            Slot::Found(_, record) => Some(record),
            Slot::Absent(_) => None,
        }
    }

    /// The record of `key` if it exists; otherwise creates `record`, inserts it and returns `None`.
    pub fn find_or_insert(
        &self,
        key: &[u8],
        record: impl Fn() -> Ref<Record>,
    ) -> Option<Ref<Record>> {
        loop {
            let leaf = self.leaf(key, Mode::Write);
            match leaf.node.search(&self.arena, key) {
                Slot::Found(_, record) => return Some(record),
                Slot::Absent(at) if !leaf.node.is_full() => {
                    leaf.node.insert(&self.arena, at, key, record());
                    self.len.fetch_add(1, Relaxed);
                    return None;
                }
                Slot::Absent(_) => {}
            }
            drop(leaf);
            self.split_on_the_way(key);
        }
    }

    pub fn len(&self) -> usize {
        self.len.load(Relaxed)
    }

    /// The leaf for `key`, locked in mode `at_leaf`. Nodes above get read locks, each held until the child's is.
    fn leaf(&self, key: &[u8], at_leaf: Mode) -> Locked<'_> {
        let mode = |level| if level == 0 { at_leaf } else { Mode::Read };
        let mut pause = Backoff::default();
        loop {
            let Some(mut at) = self.locked_root(mode) else {
                pause.wait();
                continue;
            };
            let is_root_free = at.mode == Mode::Free;
            if is_root_free {
                let child = self.child(&at, key, mode);
                if self.root.load() != Some(at.own) {
                    continue;
                }
                at = child;
            }
            while at.node.level > 0 {
                at = self.child(&at, key, mode);
            }
            return at;
        }
    }

    /// The root, locked in the protocol that locks roots; `None` if it was replaced meanwhile.
    fn locked_root(&self, mode: impl Fn(u32) -> Mode) -> Option<Locked<'_>> {
        let own = self.root.load()?;
        let node = self.arena.get(own);
        let is_free = self.kind == Root::Optimistic && node.level > 0;
        let mode = if is_free {
            Mode::Free
        } else {
            mode(node.level)
        };
        let root = self.lock(own, mode);
        (self.root.load() == Some(own)).then_some(root)
    }

    fn lock(&self, own: Ref<Node>, mode: Mode) -> Locked<'_> {
        let node = self.arena.get(own);
        match mode {
            Mode::Free => {}
            Mode::Read => node.latch.read(),
            Mode::Write => node.latch.write(),
        }
        Locked { node, own, mode }
    }

    fn child(&self, parent: &Locked<'_>, key: &[u8], mode: impl Fn(u32) -> Mode) -> Locked<'_> {
        let place = match parent.node.search(&self.arena, key) {
            Slot::Found(at, _) => at + 1,
            Slot::Absent(at) => at,
        };
        let own = parent.node.child(&self.arena, place);
        let own = own.expect("a node that does not change has all its children");
        self.arena.prefetch(own, size_of::<Node>());
        self.lock(own, mode(parent.node.level - 1))
    }

    /// Splits the full nodes on the way to `key`, with write locks from the root on.
    fn split_on_the_way(&self, key: &[u8]) {
        let change = (self.kind == Root::Optimistic).then(|| self.root_change.lock());
        let Some(mut at) = self.locked_root(|_| Mode::Write) else {
            return;
        };
        if at.node.is_full() {
            return self.grow(&at, key);
        }
        if at.mode == Mode::Free {
            let child = self.child(&at, key, |_| Mode::Write);
            if child.node.is_full() {
                let copy = self.copy(at.node);
                self.split(self.arena.get(copy), child.node, key);
                self.root.store(Some(copy));
                return;
            }
            at = child;
        }
        drop(change);
        while at.node.level > 0 {
            let child = self.child(&at, key, |_| Mode::Write);
            if child.node.is_full() {
                return self.split(at.node, child.node, key);
            }
            at = child;
        }
    }

    /// Puts a root above two halves of the full one.
    fn grow(&self, full: &Locked<'_>, key: &[u8]) {
        let left = match full.mode {
            Mode::Free => self.copy(full.node),
            _ => full.own,
        };
        let root = Node::put(&self.arena, full.node.level + 1);
        let node = self.arena.get(root);
        node.set_child(&self.arena, 0, Some(left));
        self.split(node, self.arena.get(left), key);
        self.root.store(Some(root));
    }

    fn copy(&self, node: &Node) -> Ref<Node> {
        let copy = Node::put(&self.arena, node.level);
        node.move_entries(&self.arena, node.count(), 0, self.arena.get(copy));
        copy
    }

    /// Moves the upper half of `full` to a new child of `parent`; no other thread may read the two.
    fn split(&self, parent: &Node, full: &Node, key: &[u8]) {
        let arena = &self.arena;
        let count = full.count();
        let appends = full.high().is_none() && full.search(arena, key).lower() == count;
        let at = if appends { count - 2 } else { count / 2 };
        let pivot = full.record(at).expect("a full node has this entry");
        let right_own = Node::put(arena, full.level);
        let right = arena.get(right_own);
        let from = if full.level > 0 { at + 1 } else { at };
        full.move_entries(arena, at, from, right);
        right.set_fences(Some(pivot), full.high());
        full.set_fences(full.low(), Some(pivot));
        full.refit(arena);
        right.refit(arena);
        let at = parent.search(arena, arena.first(pivot)).lower();
        parent.insert_child(arena, at, pivot, right_own);
    }
}
