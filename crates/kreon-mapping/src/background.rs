//! What reads without a waiting thread share.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::Waker;

use kreon_base::{PageNo, Priority};
use parking_lot::Mutex;

use crate::begin::PageCheck;
use crate::hot::Generation;
use crate::mapping::Mapping;
use crate::reactor::Reactor;
use crate::ticket::Stub;
use crate::well::Flights;

/// See the module's text.
pub(crate) struct BackgroundReads {
    pub flights: Flights<Cargo>,
    /// Tasks that wait until fewer reads are in flight.
    room: Mutex<VecDeque<Waker>>,
    /// Threads that take completions because they wait for nothing else ([`Mapping::drive`]).
    pub drivers: AtomicUsize,
    /// Takes completions where nobody else does.
    pub reactor: Arc<Reactor>,
}

/// What a landing needs to know.
pub(crate) struct Cargo {
    pub what: Wanted,
    pub stub: Stub,
}

/// What a flight brings.
pub(crate) enum Wanted {
    /// Consecutive pages, which are being loaded.
    Pages {
        first: PageNo,
        priority: Priority,
        check: Option<PageCheck>,
        /// Those whose errors matter to the task; the others only came along.
        needed: Range<u64>,
    },
    /// A record that is to be kept by itself.
    Record {
        offset_bytes: u64,
        len_bytes: usize,
        /// Bytes of the flight before it.
        within: usize,
        generation: Generation,
    },
}

impl Mapping {
    /// What reads without a waiting thread need; `None` if the system does not have it, or
    /// pages are read through `mmap`.
    pub(crate) fn background(self: &Arc<Self>) -> Option<&BackgroundReads> {
        let reads = self.background.get_or_init(|| {
            if self.mapped.is_some() {
                return None;
            }
            let queue = self.device.read_queue()?;
            let reactor = Reactor::start(self)?;
            // SAFETY: it is dropped with the mapping, of which it is a field in front of `pages`, which has
            // the space.
            let flights = unsafe { Flights::new(queue) };
            Some(BackgroundReads {
                flights,
                room: Mutex::default(),
                drivers: AtomicUsize::new(0),
                reactor,
            })
        });
        reads
            .as_ref()
            .filter(|reads| !reads.flights.queue().is_broken())
    }
}

impl BackgroundReads {
    pub(crate) fn is_full(&self) -> bool {
        let queue = self.flights.queue();
        queue.in_flight() >= queue.depth()
    }

    /// Has `waker` called when there is room for more in flight. False if there is: then it may not be
    /// called.
    pub(crate) fn wait_for_room(&self, waker: &Waker) -> bool {
        let mut room = self.room.lock();
        // Under the lock: a landing that comes after this look takes the lock after us.
        let is_full = self.is_full();
        if is_full && !room.iter().any(|known| known.will_wake(waker)) {
            room.push_back(waker.clone());
        }
        is_full
    }

    /// Takes as many of those who wait as there is room for. All, when nothing is in flight any more:
    /// of those that were called before some may have been dropped.
    pub(crate) fn take_waiting_for_room(&self, taken: &mut Vec<Waker>) {
        let queue = self.flights.queue();
        let mut room = self.room.lock();
        let in_flight = queue.in_flight();
        let count = match in_flight {
            0 => room.len(),
            _ => queue.depth().saturating_sub(in_flight).min(room.len()),
        };
        taken.extend(room.drain(..count));
    }

    pub(crate) fn has_drivers(&self) -> bool {
        self.drivers.load(SeqCst) > 0
    }
}

impl Drop for BackgroundReads {
    fn drop(&mut self) {
        self.reactor.end();
    }
}
