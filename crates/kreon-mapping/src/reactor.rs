//! The thread that takes completions where nobody else does.
//!
//! A task that waits cannot take the completion of its own read: its executor's thread sleeps on something
//! else. So a thread sleeps in the device's queue for it. Where a thread [drives](Mapping::drive) its reads itself,
//! this one only looks in every millisecond: the driving thread may be busy with something that waits for
//! a page whose read it would have to end first.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst, fence};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::mapping::Mapping;

/// How often it looks after reads that others drive.
const LOOK_AFTER: Duration = Duration::from_millis(1);

/// How long it stays in the queue when nothing is in flight: a task that reads one page after the other
/// need not wake it by a call each time.
const LINGER: Duration = Duration::from_millis(5);

/// How long it waits for several reads to end, so as to wake its tasks together.
const GATHER: Duration = Duration::from_micros(100);

/// The share of the reads in flight that it waits for.
const GATHER_SHARE: usize = 4;

/// See the module's text: what the thread shares with those who need it.
#[derive(Default)]
pub(crate) struct Reactor {
    /// It sleeps, or is about to, and must be called.
    is_asleep: AtomicBool,
    signal: Mutex<Signal>,
    changed: Condvar,
}

#[derive(Default)]
struct Signal {
    is_called: bool,
    is_ended: bool,
}

impl Reactor {
    /// Starts the thread. `None` if the system has no thread to give.
    pub(crate) fn start(mapping: &Arc<Mapping>) -> Option<Arc<Self>> {
        let reactor = Arc::new(Self::default());
        let (own, mapping) = (Arc::clone(&reactor), Arc::downgrade(mapping));
        let thread = std::thread::Builder::new().name("kreon-reads".to_owned());
        match thread.spawn(move || own.run(&mapping)) {
            Ok(_) => Some(reactor),
            Err(error) => {
                tracing::warn!(%error, "no thread for asynchronous reads");
                None
            }
        }
    }

    /// There is something in flight: sees to it that it is taken.
    pub(crate) fn rouse(&self) {
        // Either the thread, about to sleep, sees what is in flight, or it is seen to sleep here.
        fence(SeqCst);
        if self.is_asleep.load(SeqCst) {
            self.signal.lock().is_called = true;
            self.changed.notify_one();
        }
    }

    /// The mapping is gone.
    pub(crate) fn end(&self) {
        self.signal.lock().is_ended = true;
        self.changed.notify_one();
    }

    fn run(&self, mapping: &Weak<Mapping>) {
        loop {
            self.is_asleep.store(true, SeqCst);
            fence(SeqCst);
            let is_busy = |mapping: Arc<Mapping>| mapping.in_flight() > 0;
            if !mapping.upgrade().is_some_and(is_busy) && !self.sleep() {
                return;
            }
            self.is_asleep.store(false, SeqCst);
            let mut gathers = false;
            while let Some(mapping) = mapping.upgrade()
                && mapping.look_after(&mut gathers)
            {}
        }
    }

    /// Sleeps until called. False if the mapping is gone.
    fn sleep(&self) -> bool {
        let mut signal = self.signal.lock();
        while !signal.is_called && !signal.is_ended {
            self.changed.wait(&mut signal);
        }
        signal.is_called = false;
        !signal.is_ended
    }
}

impl Mapping {
    /// Reads in flight that no thread waits for in a call.
    pub(crate) fn in_flight(&self) -> usize {
        let reads = self.background.get().and_then(Option::as_ref);
        reads.map_or(0, |reads| reads.flights.queue().in_flight())
    }

    /// One round of the thread. `gathers`: the last round brought something, so that it pays to wait for
    /// several. False when there is nothing left to look after.
    fn look_after(&self, gathers: &mut bool) -> bool {
        let Some(Some(reads)) = self.background.get() else {
            return false;
        };
        let queue = reads.flights.queue();
        let in_flight = queue.in_flight();
        if reads.has_drivers() {
            std::thread::sleep(LOOK_AFTER);
            queue.submit();
        } else if *gathers && in_flight > GATHER_SHARE {
            queue.wait(in_flight / GATHER_SHARE, GATHER);
        } else {
            queue.wait(1, LINGER);
        }
        *gathers = self.land(reads);
        in_flight > 0 || queue.in_flight() > 0
    }
}
