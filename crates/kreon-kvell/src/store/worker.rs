//! A worker: does all I/O of its partitions, at depth, in one queue.
//!
//! **What a flush covers.** A partition that is told of the end of a write loads the number of the last flush that began,
//! and waits for a larger one. So the flush that it waits for began after the load, and is pushed, by whichever worker,
//! after it began; the write was reaped, by whichever worker, before the load. A queue's flush speaks for all writes to the
//! device that were reaped before it was pushed, also from other queues: it is the device that is flushed.
//!
//! **No wish for a flush is lost.** A worker that sees one begins a flush, or finds that one is under way. The worker whose
//! that is says first that it has ended, and looks at all partitions then. A wish that came before it looked it sees
//! itself; who has a later one finds that the flush has ended.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kreon_base::Result;
use kreon_device::{TransferQueue, Transferred};

use super::bell::nap;
use super::call::Answers;
use super::flights::{Flight, Flights};
use super::shared::Shared;
use super::shared_partition::{End, Needs};
use crate::partition::Transfer;
use crate::space::{FlushNo, SuperblockPage};

/// Places in the queue beside those of the partitions: for a flush and the superblock in front of it.
pub const PLACES: usize = 1;

/// Tags of a flush and of a superblock; those of other transfers count up from 0.
const FLUSH_TAG: u64 = u64::MAX;
const SUPERBLOCK_TAG: u64 = u64::MAX - 1;

/// Longest sleep of a worker that waits for nothing.
const PATIENCE_MAX: Duration = Duration::from_secs(600);

/// What does the I/O of some partitions, in one thread at a time.
pub struct Worker {
    shared: Arc<Shared>,
    number: usize,
    queue: Box<dyn TransferQueue>,
    own: Vec<Own>,
    flights: Flights,
    /// Own partitions that may have transfers to give out, in their turn.
    hungry: VecDeque<usize>,
    /// The flush that is in flight here.
    flush: Option<Flushing>,
    /// When durable marks are due next, if this worker sees to them.
    marks_at: Option<Instant>,
    marks_every: Duration,
    ended: Vec<Transferred>,
    /// Whether something has ended since the last nap.
    has_reaped: bool,
    transfers: Vec<Transfer>,
    answers: Answers,
}

/// A partition of the worker.
struct Own {
    /// Its number in the store.
    number: usize,
    /// Transfers that have ended and that it was not told of.
    ends: Vec<End>,
    is_hungry: bool,
    /// When a flush is to begin for its buffered changes.
    flush_at: Option<Instant>,
}

#[derive(Clone, Copy)]
struct Flushing {
    flush: FlushNo,
    begun: Instant,
    /// Sequence of the superblock that is written before it.
    superblock: Option<u64>,
}

impl Worker {
    /// Worker `number` of the store, with a queue of `depth` transfers of partitions and [`PLACES`] more.
    pub fn new(
        shared: Arc<Shared>,
        number: usize,
        (queue, depth): (Box<dyn TransferQueue>, usize),
        marks_every: Duration,
    ) -> Self {
        let workers = shared.bells.len().max(1);
        let own = (number..shared.partitions.len()).step_by(workers);
        Self {
            own: own.map(Own::new).collect(),
            shared,
            number,
            queue,
            flights: Flights::new(depth),
            hungry: VecDeque::new(),
            flush: None,
            marks_at: (number == 0).then(|| Instant::now() + marks_every),
            marks_every,
            ended: Vec::new(),
            has_reaped: false,
            transfers: Vec::new(),
            answers: Answers::default(),
        }
    }

    /// This thread works from now on.
    pub fn sit(&self) {
        if let Some(bell) = self.shared.bells.get(self.number) {
            bell.sit();
        }
    }

    /// Takes in what has ended, begins what is to be done, and sleeps, but not while `is_urgent`, which ends a sleep if the
    /// bell rings. `false`: the store has stopped, or the turn has panicked and all who wait for its partitions were told.
    pub fn turn_or_break_off(&mut self, is_urgent: &dyn Fn() -> bool) -> bool {
        let outcome = catch_unwind(AssertUnwindSafe(|| self.turn(is_urgent)));
        outcome.unwrap_or_else(|_| {
            self.break_off();
            false
        })
    }

    fn break_off(&mut self) {
        self.shared.clock.fail();
        for own in &self.own {
            if let Some(partition) = self.shared.partitions.get(own.number) {
                partition.break_off(&mut self.answers);
            }
        }
        self.answers.hand_out();
        self.shared.attend_failure();
        // Last: a subscriber may panic, and may be what has.
        tracing::error!(worker = self.number, "a worker has panicked");
    }

    fn turn(&mut self, is_urgent: &dyn Fn() -> bool) -> bool {
        let now = Instant::now();
        let is_stopped = self.shared.is_stopped();
        if is_stopped && self.queue.in_flight() == 0 {
            return false;
        }
        let mut flush_now = self.reap();
        let room = if is_stopped { 0 } else { self.flights.room() };
        flush_now |= self.visit_all(now, room);
        flush_now |= self.is_time_for_marks(now);
        self.shared.attend_failure();
        if flush_now && !is_stopped {
            self.begin_flush(now);
        }
        self.sleep(now, is_urgent);
        true
    }

    /// Takes in what has ended. `true`: a flush is wished for.
    fn reap(&mut self) -> bool {
        let mut flush_now = false;
        let mut ended = std::mem::take(&mut self.ended);
        self.queue.reap(&mut ended);
        self.has_reaped |= !ended.is_empty();
        for Transferred {
            tag,
            outcome,
            buffer,
        } in ended.drain(..)
        {
            match tag {
                FLUSH_TAG => flush_now |= self.flush_ended(outcome),
                SUPERBLOCK_TAG => match outcome {
                    Ok(()) => self.queue.flush(FLUSH_TAG),
                    Err(error) => flush_now |= self.flush_ended(Err(error)),
                },
                tag => {
                    let Some(Flight { partition, tag }) = self.flights.arrive(tag) else {
                        continue;
                    };
                    if let Some(own) = self.own.get_mut(partition) {
                        own.ends.push(End {
                            tag,
                            outcome,
                            buffer,
                        });
                    }
                }
            }
        }
        self.ended = ended;
        flush_now
    }

    /// Visits the own partitions where anything is to be done, and begins their transfers. `true`: one wishes for a flush.
    fn visit_all(&mut self, now: Instant, mut room: usize) -> bool {
        let mut flush_now = false;
        // Each gets its part of the room first, and what others leave then. If some have waited for room, they go first.
        let part = room.div_ceil(self.own.len().max(1)).max(1);
        let is_nobody_hungry = self.hungry.is_empty();
        for at in 0..self.own.len() {
            if !self.is_to_visit(at, now) {
                continue;
            }
            let given = if is_nobody_hungry { part.min(room) } else { 0 };
            let (needs, begun) = self.visit(at, now, given);
            room -= begun.min(room);
            flush_now |= needs.flush_now;
            if needs.has_transfers
                && let Some(own) = self.own.get_mut(at)
                && !own.is_hungry
            {
                own.is_hungry = true;
                self.hungry.push_back(at);
            }
        }
        while room > 0
            && let Some(at) = self.hungry.pop_front()
        {
            let (needs, begun) = self.visit(at, now, part.min(room));
            room -= begun.min(room);
            flush_now |= needs.flush_now;
            let is_hungry = needs.has_transfers && begun > 0;
            if is_hungry {
                self.hungry.push_back(at);
            }
            if let Some(own) = self.own.get_mut(at) {
                own.is_hungry = is_hungry;
            }
        }
        flush_now
    }

    fn is_to_visit(&self, at: usize, now: Instant) -> bool {
        let Some(own) = self.own.get(at) else {
            return false;
        };
        let partition = self.shared.partitions.get(own.number);
        // Asked whatever the rest says: what is there now will be seen by this visit.
        let has_news = partition.is_some_and(|partition| partition.take_news());
        has_news || !own.ends.is_empty() || own.flush_at.is_some_and(|at| at <= now)
    }

    /// Visits one partition. What it needs then, and how many transfers have begun.
    fn visit(&mut self, at: usize, now: Instant, room: usize) -> (Needs, usize) {
        let Some(own) = self.own.get_mut(at) else {
            return (Needs::default(), 0);
        };
        let Some(partition) = self.shared.partitions.get(own.number) else {
            return (Needs::default(), 0);
        };
        let out = (room, &mut self.transfers);
        let needs = partition.visit(&mut own.ends, out, now, &mut self.answers);
        own.flush_at = needs.flush_at;
        let begun = self.transfers.len();
        for transfer in self.transfers.drain(..) {
            let (Transfer::Read { tag, .. } | Transfer::Write { tag, .. }) = &transfer;
            let flight = Flight {
                partition: at,
                tag: *tag,
            };
            let tag = self.flights.depart(flight);
            match transfer {
                Transfer::Read { offset, buffer, .. } => {
                    let len_bytes = buffer.len();
                    self.queue.read(tag, offset, buffer, len_bytes);
                }
                Transfer::Write { offset, buffer, .. } => {
                    let len_bytes = buffer.len();
                    self.queue.write(tag, offset, buffer, len_bytes);
                }
            }
        }
        self.answers.hand_out();
        (needs, begun)
    }

    /// Whether the durable marks are to be written, which happens with a flush.
    fn is_time_for_marks(&mut self, now: Instant) -> bool {
        if self.marks_at.is_none_or(|at| now < at) {
            return false;
        }
        self.marks_at = Some(now + self.marks_every);
        self.shared.ask_for_marks()
    }

    /// Begins a flush, unless one is under way: then its worker begins the next.
    fn begin_flush(&mut self, now: Instant) {
        let Some(flush) = self.shared.clock.begin() else {
            // Not if one has failed: then who waits for this one is to be told.
            return self.shared.attend_failure();
        };
        let superblock = self.shared.take_marks();
        self.flush = Some(Flushing {
            flush,
            begun: now,
            superblock: superblock.as_ref().map(|it| it.sequence),
        });
        // With a superblock, the flush is pushed when that is written. It covers the more.
        match superblock {
            Some(SuperblockPage { offset, page, .. }) => {
                let len_bytes = page.len();
                self.queue.write(SUPERBLOCK_TAG, offset, page, len_bytes);
            }
            None => self.queue.flush(FLUSH_TAG),
        }
    }

    /// The flush in flight has ended, or the superblock before it has failed. `true`: the next one is wished for.
    fn flush_ended(&mut self, outcome: Result<()>) -> bool {
        let Some(Flushing {
            flush,
            begun,
            superblock,
        }) = self.flush.take()
        else {
            return false;
        };
        if outcome.is_err() || !self.shared.clock.end(flush) {
            self.shared.clock.fail();
            self.shared.attend_failure();
            return false;
        }
        if let Some(sequence) = superblock {
            self.shared.superblocks.is_durable(sequence);
        }
        let workers = self.shared.bells.len().max(1);
        let mut flush_now = self.shared.are_marks_due();
        for (number, partition) in self.shared.partitions.iter().enumerate() {
            let needs = partition.flushed(flush, begun, &mut self.answers);
            self.answers.hand_out();
            flush_now |= needs.flush_now;
            if number % workers == self.number {
                // It is visited in this turn.
                if needs.anything() {
                    partition.tell();
                }
            } else if needs.has_transfers || needs.flush_at.is_some() {
                self.shared.wake(number);
            }
        }
        flush_now
    }

    /// Begins what was pushed, and sleeps until there is something to do.
    fn sleep(&mut self, now: Instant, is_urgent: &dyn Fn() -> bool) {
        if is_urgent() {
            return self.queue.submit();
        }
        // Not twice in a row without the end of a transfer: then the device is slow, and requests are to reach it.
        if self.has_reaped && nap(&mut *self.queue) {
            self.has_reaped = false;
            return;
        }
        let times = self.own.iter().filter_map(|own| own.flush_at);
        let first = times.chain(self.marks_at).min();
        let patience = first.map_or(PATIENCE_MAX, |at| at.saturating_duration_since(now));
        let Self {
            shared, own, queue, ..
        } = self;
        let Some(bell) = shared.bells.get(self.number) else {
            return;
        };
        let has_transfers = queue.in_flight() > 0;
        let is_news = || {
            let partitions = &shared.partitions;
            !has_transfers && shared.is_stopped()
                || is_urgent()
                || own.iter().any(|own| {
                    let partition = partitions.get(own.number);
                    partition.is_some_and(|partition| partition.has_news())
                })
        };
        bell.sleep(&mut **queue, patience, is_news);
    }
}

impl Own {
    fn new(number: usize) -> Self {
        Self {
            number,
            ends: Vec::new(),
            is_hungry: false,
            flush_at: None,
        }
    }
}
