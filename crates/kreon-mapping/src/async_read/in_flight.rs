//! Reads in flight that no thread waits for in a call, and the tasks that wait until there is room for more.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::Waker;

use kreon_base::{PageNo, Priority};
use kreon_device::ReadQueue;
use parking_lot::Mutex;

use super::reactor::Reactor;
use super::request::PageCheck;
use super::ticket::TicketSender;
use crate::record_cache::Generation;
use crate::well::Flights;

/// Reads in flight, and the threads that take their completions.
pub(super) struct InFlight {
    flights: Flights<ReadContext>,
    /// Tasks that wait until fewer reads are in flight.
    room: Mutex<VecDeque<Waker>>,
    /// Threads that take completions because they wait for nothing else ([`Mapping::drive`](crate::Mapping::drive)).
    drivers: AtomicUsize,
    /// Takes completions where no driver does.
    reactor: Arc<Reactor>,
}

/// What the end of a read needs to know.
pub(super) struct ReadContext {
    pub target: ReadTarget,
    pub sender: TicketSender,
}

/// What a read brings.
pub(super) enum ReadTarget {
    /// Consecutive pages, which are being loaded.
    Pages(PagesTarget),
    /// A record that is to be kept alone.
    Record(RecordTarget),
}

pub(super) struct PagesTarget {
    pub first: PageNo,
    pub priority: Priority,
    pub check: Option<PageCheck>,
    /// Pages whose errors matter to the task; the others are only read along.
    pub needed: Range<u64>,
}

pub(super) struct RecordTarget {
    pub offset_bytes: u64,
    pub len_bytes: usize,
    /// Bytes of the read before it.
    pub within: usize,
    pub generation: Generation,
}

impl InFlight {
    /// Nothing in flight.
    pub(super) fn new(flights: Flights<ReadContext>, reactor: Arc<Reactor>) -> Self {
        Self {
            flights,
            room: Mutex::default(),
            drivers: AtomicUsize::new(0),
            reactor,
        }
    }

    pub(super) fn flights(&self) -> &Flights<ReadContext> {
        &self.flights
    }

    /// The device's queue of the reads.
    pub(super) fn queue(&self) -> &dyn ReadQueue {
        self.flights.queue()
    }

    /// Hands reads that were begun to the device, unless this thread drives its reads and has gathered fewer than
    /// `gathered_max`.
    pub(super) fn submit(&self, is_driving: bool, gathered_max: usize) {
        if !is_driving || self.queue().waiting() >= gathered_max {
            self.queue().submit();
        }
        self.reactor.rouse();
    }

    pub(super) fn is_full(&self) -> bool {
        self.queue().in_flight() >= self.queue().depth()
    }

    /// Registers `waker` for the time when there is room for more reads. False if there is room: then the waker may
    /// never be called.
    pub(super) fn wait_for_room(&self, waker: &Waker) -> bool {
        let mut room = self.room.lock();
        // Under the lock: the end of a read after this look takes the lock after us.
        let is_full = self.is_full();
        if is_full && !room.iter().any(|known| known.will_wake(waker)) {
            room.push_back(waker.clone());
        }
        is_full
    }

    /// Takes as many of the waiting tasks as there is room for, and all when nothing is in flight any more: tasks that were
    /// called before may have been dropped.
    pub(super) fn take_waiting_for_room(&self, taken: &mut Vec<Waker>) {
        let mut room = self.room.lock();
        let in_flight = self.queue().in_flight();
        let more = self.queue().depth().saturating_sub(in_flight);
        let count = match in_flight {
            0 => room.len(),
            _ => more.min(room.len()),
        };
        taken.extend(room.drain(..count));
    }

    /// A thread begins to take completions itself.
    pub(super) fn add_driver(&self) {
        self.drivers.fetch_add(1, SeqCst);
    }

    /// A thread stops taking completions.
    pub(super) fn remove_driver(&self) {
        let before = self.drivers.fetch_sub(1, SeqCst);
        debug_assert!(before > 0, "a driver leaves that was not counted");
    }

    pub(super) fn has_drivers(&self) -> bool {
        self.drivers.load(SeqCst) > 0
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.reactor.end();
    }
}
