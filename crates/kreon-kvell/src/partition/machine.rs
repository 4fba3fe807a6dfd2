//! The partition.

use kreon_base::{Error, ErrorKind, Result, planted};
use kreon_device::AlignedBuf;

use super::after::After;
use super::cells::Transfer;
use super::durable::Durable;
use super::lookup::{Lookup, index_key, look_up};
use super::parts::{Changed, Parts};
use super::queue::{Op, Queue};
use super::request::{OpNo, Origin};
use super::room::NewSlot;
use super::step::Step;
use super::tied::Listings;
use super::{Durability, Reply, Request, Task, Ticket};
use crate::cache::CellNo;
use crate::format::Timestamp;
use crate::space::FlushNo;

/// Flushes that a change awaits at most for a slot on a full volume.
const FLUSHES_MAX: u32 = 200;

/// Slots that a change finds in cells that cannot be read before it fails.
const UNREADABLE_MAX: u32 = 16;

/// Outdated items made invalid at a time on a full volume.
const ERASED_AT_ONCE: usize = 64;

/// Whether anything waits for a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlushWish {
    /// A flush would do nothing.
    None,
    /// Something would become durable, and nobody waits for it.
    Some,
    /// A request waits for it.
    Now,
}

/// A partition.
pub struct Partition {
    parts: Parts,
    queue: Queue,
    durable: Durable,
    listings: Listings,
    replies: Vec<(Ticket, Reply)>,
    failed: Option<Failed>,
}

/// A failure of the device.
struct Failed {
    error: Error,
    /// What was durable before.
    mark: Timestamp,
}

impl Partition {
    pub fn new(parts: Parts) -> Self {
        Self {
            parts,
            queue: Queue::default(),
            durable: Durable::default(),
            listings: Listings::default(),
            replies: Vec::new(),
            failed: None,
        }
    }

    /// Takes a request in and carries it as far as memory allows.
    pub fn submit(&mut self, request: Request) {
        self.submit_from(Origin::Caller, request);
    }

    /// As [`submit`](Self::submit), of a request that may be one of a scan.
    pub fn submit_from(&mut self, origin: Origin, request: Request) {
        let mut op = Op::new(request);
        if let Origin::Scan { near } = origin {
            op.is_of_scan = true;
            op.near = near;
        }
        // Nothing is ready between two calls, so its turn is at once.
        let no = self.queue.number();
        self.advance(no, op);
        self.run();
    }

    /// Appends to `out` up to `room` transfers that the device is to carry out.
    pub fn transfers(&mut self, room: usize, out: &mut Vec<Transfer>) {
        self.parts.cells.transfers(room, out);
    }

    /// A transfer has ended; `buffer` is what it had.
    pub fn ended(&mut self, tag: u64, outcome: Result<()>, buffer: Option<AlignedBuf>) {
        let brought = self.parts.cells.ended(tag, &outcome, buffer);
        match outcome {
            Err(error) => match brought.cell_read {
                Some(cell) => self.read_failed(cell, brought.ready, &error),
                None => self.fail(&error),
            },
            Ok(()) => {
                self.queue.wake(brought.ready);
                for (oldest, after) in brought.written {
                    self.written(oldest, after);
                }
            }
        }
        self.run();
        if let Some(cell) = brought.cell_read {
            self.parts.cells.settle(cell);
        }
    }

    /// Whether anything waits for a flush.
    pub fn flush_wish(&self) -> FlushWish {
        if self.failed.is_some() {
            FlushWish::None
        } else if self.durable.has_replies() || self.queue.awaits_flush() {
            FlushWish::Now
        } else if self.durable.is_empty() {
            FlushWish::None
        } else {
            FlushWish::Some
        }
    }

    /// The flush `flush`, which the clock counted, has ended.
    pub fn flushed(&mut self, flush: FlushNo, outcome: Result<()>) {
        // After a failure elsewhere a flush says nothing about what was written before.
        match outcome.and_then(|()| self.check_device()) {
            Err(error) => self.fail(&error),
            Ok(()) => {
                for after in self.durable.flushed(flush) {
                    self.is_durable(after);
                }
                self.give_back();
                self.queue.wake_after_flush();
            }
        }
        self.run();
    }

    /// The replies since the last call.
    pub fn replies(&mut self) -> Vec<(Ticket, Reply)> {
        std::mem::take(&mut self.replies)
    }

    /// Whether all requests were answered and all transfers have ended.
    pub fn is_idle(&self) -> bool {
        let cells = &self.parts.cells;
        self.queue.is_empty() && cells.in_flight() == 0 && cells.waiting() == 0
    }

    /// All writes up to this timestamp are durable.
    pub fn durable_mark(&self) -> Timestamp {
        if let Some(failed) = &self.failed {
            return failed.mark;
        }
        let (cells, large) = (&self.parts.cells, &self.parts.large);
        let oldest = [cells.oldest(), self.durable.oldest(), large.oldest()];
        match oldest.into_iter().flatten().min() {
            Some(oldest) => Timestamp(oldest.0.saturating_sub(1)),
            None => self.parts.last,
        }
    }

    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    /// What requests work on, for tests that set limits.
    pub fn parts_mut(&mut self) -> &mut Parts {
        &mut self.parts
    }

    /// Gives extents back that are no longer needed. A failure of the device shows at the next change.
    fn give_back(&mut self) {
        if let Err(error) = self.parts.give_back(false) {
            self.fail(&error);
        }
    }

    /// Carries all requests as far as memory allows, and makes outdated items invalid if there are too many.
    fn run(&mut self) {
        loop {
            if let Some((no, op)) = self.queue.pop() {
                self.advance(no, op);
            } else if let Some(stale) = self.parts.room.too_many() {
                self.queue.push(Op::new(Request::erase(stale)));
            } else {
                return;
            }
        }
    }

    fn advance(&mut self, no: OpNo, op: Op) {
        let key = index_key(&self.parts.index, &op);
        let first = match key {
            Some(key) => self.queue.behind(key, no, op),
            None => Some(op),
        };
        let Some(mut op) = first else {
            return;
        };
        let step = self.step(no, &mut op).unwrap_or_else(|error| {
            // What was changed before the failure may not be on the device.
            let is_of_device = error.kind() == ErrorKind::Io;
            if is_of_device && op.request.is_change() {
                self.fail(&error);
            }
            Step::Reply(Reply::Failed(error))
        });
        match step {
            Step::Read(place) => {
                let cells = &mut self.parts.cells;
                match op.is_of_scan {
                    true => cells.want_for_scan(place.cell, place.cell_bytes, no),
                    false => cells.want(place.cell, place.cell_bytes, no),
                }
                self.queue.wait(no, op, key);
            }
            Step::ReadSome(places) => {
                for place in places {
                    self.parts.cells.want_once(place.cell, place.cell_bytes, no);
                }
                self.queue.wait(no, op, key);
            }
            Step::Again => {
                self.queue.keep(no, op);
                self.queue.wake([no]);
            }
            Step::Parts if op.get.is_some() => {
                self.let_go(&mut op, key);
                self.queue.wait(no, op, None);
            }
            Step::Parts => self.queue.wait(no, op, key),
            Step::Flush => {
                op.flushes += 1;
                self.queue.wait_for_flush(no, op, key.unwrap_or_default());
            }
            Step::Reply(reply) => self.end(op, key, Some(reply)),
            Step::Written => self.end(op, key, None),
        }
    }

    /// The request needs nothing more, except perhaps that a write becomes durable.
    fn end(&mut self, mut op: Op, key: Option<u64>, reply: Option<Reply>) {
        self.parts.let_go(&mut op);
        self.let_go(&mut op, key);
        if let (Some(reply), Some(ticket)) = (reply, op.request.ticket) {
            self.replies.push((ticket, reply));
        }
    }

    /// Others of the same index key need not wait for `op` any longer.
    fn let_go(&mut self, op: &mut Op, key: Option<u64>) {
        if op.holds_key
            && let Some(key) = key
        {
            op.holds_key = false;
            self.queue.let_go(key);
        }
    }

    fn step(&mut self, no: OpNo, op: &mut Op) -> Result<Step> {
        if op.get.is_some() {
            let got = self.parts.value_of_parts(no, op)?;
            return Ok(got.into());
        }
        if op.request.is_change() {
            self.check_device()?;
        }
        if matches!(op.request.task, Task::Tied) {
            return Ok(self.listings.advance(no, &op.request.key, &mut self.parts));
        }
        if let Task::Erase(stale) = op.request.task {
            let changed = self.parts.erase(stale)?;
            return self.changed(op, changed);
        }
        let reply = op.request.reply();
        let found = match look_up(&mut self.parts, op)? {
            Lookup::Moved => return Ok(Step::Again),
            Lookup::Read(place) => return Ok(Step::Read(place)),
            Lookup::At(place) => Some(place),
            Lookup::None => None,
        };
        match (&mut op.request.task, found) {
            (Task::Get, None) => Ok(Step::Reply(Reply::Value(None))),
            (Task::Get, Some(place)) => Ok(self.parts.value(no, op, place)?.into()),
            (Task::Delete { .. }, None) => Ok(self.delete_of_nothing(op, reply)),
            (Task::Delete { .. }, Some(place)) => {
                let changed = self.parts.delete(op, place, reply)?;
                self.changed(op, changed)
            }
            (Task::Put { value, .. }, found) => {
                // Taken out for the call and put back: a put that waits needs it again.
                let value = std::mem::take(value);
                let changed = self.parts.put(no, op, &value, found, reply);
                if let Task::Put { value: place, .. } = &mut op.request.task {
                    *place = value;
                }
                self.changed(op, changed?)
            }
            (Task::Tied | Task::Erase(_), _) => Ok(Step::Written),
        }
    }

    /// Fails after a failure of the device, here or in another partition.
    fn check_device(&mut self) -> Result<()> {
        if self.failed.is_none() && self.parts.clock.has_failed() {
            self.fail(&Error::new(ErrorKind::Io, "another partition met it"));
        }
        match &self.failed {
            Some(failed) => Err(failed.error.clone()),
            None => Ok(()),
        }
    }

    /// A deletion of a key that has no item. If a deletion before it is not durable yet, they become so together.
    fn delete_of_nothing(&mut self, op: &Op, reply: Option<After>) -> Step {
        let done = Step::Reply(Reply::Done);
        let fresh = self.parts.room.stale().fresh_burial(op.request.key_hash);
        let (Some(slot), Some(reply)) = (fresh, reply) else {
            return done;
        };
        let is_it = |after: &After| matches!(after, After::Buries { slot: at, .. } if *at == slot);
        let place = self.parts.room.place(slot);
        let is_sync = matches!(reply, After::Reply(_, Durability::Sync));
        let follows = place.is_some_and(|place| self.parts.cells.follow(place.cell, is_it, reply))
            || is_sync && self.durable.follow(is_it, reply);
        if follows { Step::Written } else { done }
    }

    /// A step of a change that a full volume may have stopped.
    fn changed(&mut self, op: &Op, changed: Changed) -> Result<Step> {
        match changed {
            Changed::Yes => Ok(Step::Written),
            Changed::Read(place) => Ok(Step::Read(place)),
            Changed::Parts => Ok(Step::Parts),
            Changed::Full(error) => {
                let is_hopeful = !self.durable.is_empty()
                    || self.parts.cells.has_writes()
                    || self.parts.room.stale().ready_count() > 0;
                if !is_hopeful || op.flushes >= FLUSHES_MAX {
                    return Err(error);
                }
                for _ in 0..ERASED_AT_ONCE {
                    let Some(stale) = self.parts.room.any_stale() else {
                        break;
                    };
                    self.queue.push(Op::new(Request::erase(stale)));
                }
                Ok(Step::Flush)
            }
        }
    }

    /// A write has ended that had items from `oldest` on.
    fn written(&mut self, oldest: Option<Timestamp>, mut after: Vec<After>) {
        self.queue.parts_written(&mut after);
        if self.parts.is_lossless {
            after.into_iter().for_each(|after| self.is_durable(after));
            return;
        }
        let mut at_once = Vec::new();
        after.retain(|after| {
            let After::Reply(_, durability) = after else {
                return true;
            };
            let answers_now = *durability == Durability::Buffered;
            planted!(AckBeforeFlush => let answers_now = true);
            if answers_now {
                at_once.push(*after);
            }
            !answers_now
        });
        at_once.into_iter().for_each(|after| self.is_durable(after));
        self.durable
            .written(self.parts.clock.covers_now(), oldest, after);
    }

    fn is_durable(&mut self, after: After) {
        match after {
            After::Reply(ticket, _) => self.replies.push((ticket, Reply::Done)),
            other => self.parts.durable(other),
        }
    }

    /// A cell cannot be read. Who wanted to write beside what is in it goes elsewhere; the slot stays out of use: put back, it
    /// would be found again by the next change.
    fn read_failed(&mut self, cell: CellNo, readers: Vec<OpNo>, error: &Error) {
        for no in readers {
            let Some(mut op) = self.queue.take(no) else {
                continue;
            };
            if self.listings.unreadable(no, cell, error) {
                self.queue.keep(no, op);
                self.queue.wake([no]);
                continue;
            }
            let room = &mut self.parts.room;
            let is_there = |slot: &NewSlot| {
                let place = room.place(slot.location());
                place.is_some_and(|place| place.cell == cell)
            };
            if let Some(slot) = op.slot.filter(is_there) {
                room.give_up(slot);
                op.slot = None;
                op.unreadable += 1;
                if op.unreadable < UNREADABLE_MAX {
                    self.queue.keep(no, op);
                    self.queue.wake([no]);
                    continue;
                }
            }
            let key = index_key(&self.parts.index, &op);
            self.end(op, key, Some(Reply::Failed(error.clone())));
        }
    }

    /// A write or flush has failed: nothing that was not durable before becomes so. Reads go on.
    fn fail(&mut self, error: &Error) {
        if self.failed.is_some() {
            return;
        }
        self.parts.clock.fail();
        let poisoned = Error::new(
            ErrorKind::Poisoned,
            format!("a write or flush of the volume has failed ({error}): open the store again"),
        );
        self.failed = Some(Failed {
            mark: self.durable_mark(),
            error: poisoned.clone(),
        });
        let mut waiting = self.parts.cells.abandon_writes();
        waiting.append(&mut self.durable.abandon());
        for after in waiting {
            if let After::Reply(ticket, _) = after {
                self.replies.push((ticket, Reply::Failed(poisoned.clone())));
            }
        }
        self.queue.let_all_go();
    }
}
