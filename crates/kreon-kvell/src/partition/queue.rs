//! Requests that wait, and who goes first on a key.
//!
//! A request that cannot be done at once keeps others of the same index key behind it, in their order: what it has found
//! out stays true while it waits.

use std::collections::VecDeque;

use super::after::After;
use super::large::{LargeGet, LargePut};
use super::request::{OpNo, Request};
use super::room::NewSlot;
use crate::index::Location;
use crate::number_hash::NumberMap;
use crate::space::Place;

/// A request under way.
pub struct Op {
    pub request: Request,
    /// Items up to this place, among those that look like the key's in the index, belong to other keys.
    pub others_up_to: Option<Location>,
    /// Where the item of a key is that does not stand whole in the index: found by reading it, and true while the index key
    /// is held.
    pub found: Option<Location>,
    /// Where the item of a key is that stands whole in the index, when that was of this version.
    pub seen: Option<(u64, Place)>,
    /// Whether it is a get for a scan.
    pub is_of_scan: bool,
    /// Where the item was a moment ago, of a get of a key that does not stand whole in the index: looked at first.
    pub near: Option<Location>,
    /// The slot for the new item.
    pub slot: Option<NewSlot>,
    /// The large value that it writes.
    pub put: Option<Box<LargePut>>,
    /// The large value that it reads. What other requests do to the key is of no matter then.
    pub get: Option<Box<LargeGet>>,
    /// Whether others of the same index key wait for this one.
    pub holds_key: bool,
    /// Flushes that it has waited for to get a slot.
    pub flushes: u32,
    /// Slots that it has given up because their cells cannot be read.
    pub unreadable: u32,
}

impl Op {
    pub fn new(request: Request) -> Self {
        Self {
            request,
            others_up_to: None,
            found: None,
            seen: None,
            is_of_scan: false,
            near: None,
            slot: None,
            put: None,
            get: None,
            holds_key: false,
            flushes: 0,
            unreadable: 0,
        }
    }
}

/// The requests of a partition that are not done.
#[derive(Default)]
pub struct Queue {
    ops: NumberMap<OpNo, Op>,
    next: u64,
    /// Those that can go on.
    ready: VecDeque<OpNo>,
    /// By hash of the index key: who comes after the one that holds it.
    held: NumberMap<u64, VecDeque<OpNo>>,
    /// Those that wait for a flush to get a slot.
    awaiting_flush: Vec<OpNo>,
}

impl Queue {
    /// Adds a request that can go on.
    pub fn push(&mut self, op: Op) {
        let no = self.number();
        self.ops.insert(no, op);
        self.ready.push_back(no);
    }

    /// A number for a request whose turn is at once.
    pub fn number(&mut self) -> OpNo {
        let no = OpNo(self.next);
        self.next += 1;
        no
    }

    /// The next request that can go on.
    pub fn pop(&mut self) -> Option<(OpNo, Op)> {
        loop {
            let no = self.ready.pop_front()?;
            if let Some(op) = self.ops.remove(&no) {
                return Some((no, op));
            }
        }
    }

    /// Puts `op` behind the request that holds its index key; gives it back if none does, or it does itself.
    pub fn behind(&mut self, key: u64, no: OpNo, op: Op) -> Option<Op> {
        match self.held.get_mut(&key) {
            Some(behind) if !op.holds_key => {
                behind.push_back(no);
                self.ops.insert(no, op);
                None
            }
            _ => Some(op),
        }
    }

    /// Keeps a request until [`wake`](Self::wake); those of the same index key stay behind it.
    pub fn wait(&mut self, no: OpNo, mut op: Op, key: Option<u64>) {
        if let Some(key) = key
            && !op.holds_key
        {
            op.holds_key = true;
            self.held.entry(key).or_default();
        }
        self.ops.insert(no, op);
    }

    /// As [`wait`](Self::wait), for a flush.
    pub fn wait_for_flush(&mut self, no: OpNo, op: Op, key: u64) {
        self.wait(no, op, Some(key));
        self.awaiting_flush.push(no);
    }

    /// The request holds its index key no longer: the next one of that key can go on.
    pub fn let_go(&mut self, key: u64) {
        let Some(behind) = self.held.remove(&key) else {
            return;
        };
        // They go on in their order; the first that waits again keeps the others behind it.
        for no in behind.into_iter().rev() {
            self.ready.push_front(no);
        }
    }

    /// Those that waited can go on.
    pub fn wake(&mut self, ops: impl IntoIterator<Item = OpNo>) {
        self.ready.extend(ops);
    }

    /// Those that waited for a flush can go on.
    pub fn wake_after_flush(&mut self) {
        self.ready.extend(self.awaiting_flush.drain(..));
    }

    /// Whether somebody waits for a flush to get a slot.
    pub fn awaits_flush(&self) -> bool {
        !self.awaiting_flush.is_empty()
    }

    /// Puts back a request that was taken out; it holds its index key still.
    pub fn keep(&mut self, no: OpNo, op: Op) {
        self.ops.insert(no, op);
    }

    /// Takes a request out of those that wait.
    pub fn take(&mut self, no: OpNo) -> Option<Op> {
        self.ops.remove(&no)
    }

    /// Takes out of what waited for a write those who wait for parts of the large values that they write: they can go on.
    pub fn parts_written(&mut self, after: &mut Vec<After>) {
        after.retain(|after| {
            let &After::Part(no) = after else {
                return true;
            };
            let op = self.ops.get_mut(&no);
            if let Some(put) = op.and_then(|op| op.put.as_mut()) {
                put.written();
                self.ready.push_back(no);
            }
            false
        });
    }

    /// Has all requests go on, each by itself.
    pub fn let_all_go(&mut self) {
        for op in self.ops.values_mut() {
            op.holds_key = false;
            op.others_up_to = None;
            op.found = None;
        }
        self.held.clear();
        self.awaiting_flush.clear();
        let mut all: Vec<OpNo> = self.ops.keys().copied().collect();
        all.sort_unstable();
        self.ready = all.into();
    }

    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }
}
