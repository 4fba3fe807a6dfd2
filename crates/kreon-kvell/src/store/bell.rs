//! How a worker sleeps, and is woken.
//!
//! Who makes work tells so in a flag first and looks whether the worker is asleep then; the worker says that it is about to
//! sleep first and looks for such flags then. Both in one order of all (`SeqCst`), so one of the two sees the other. A
//! worker that is awake costs its callers a load.
//!
//! With many transfers in flight the worker naps instead: it sleeps for several of them to end, for [`NAP_MAX`] at most, and
//! cannot be woken. So one wake-up, and one submission, serves several transfers and all requests that came meanwhile.

use std::sync::atomic::{AtomicU8, Ordering::SeqCst};
use std::task::Waker;
use std::thread::Thread;
use std::time::Duration;

use kreon_device::TransferQueue;
use parking_lot::Mutex;

/// Longest nap: what a request waits for a worker at most, beside [`NAP_TRANSFERS_MIN`] transfers in flight.
const NAP_MAX: Duration = Duration::from_micros(100);

/// A worker with fewer transfers in flight does not nap.
const NAP_TRANSFERS_MIN: usize = 8;

/// One of so many transfers in flight has ended at the end of a nap: the device still has the others.
const NAP_PART: usize = 4;

/// Awake, or napping.
const AWAKE: u8 = 0;
const ON_QUEUE: u8 = 1;
const PARKED: u8 = 2;

/// Begins what was pushed, and naps if much is in flight. Says whether it has.
pub fn nap(queue: &mut dyn TransferQueue) -> bool {
    let in_flight = queue.in_flight();
    let naps = in_flight >= NAP_TRANSFERS_MIN;
    if naps {
        queue.wait_for(in_flight / NAP_PART, NAP_MAX);
    }
    naps
}

/// Wakes one worker.
pub struct Bell {
    state: AtomicU8,
    /// Ends a sleep for transfers.
    waker: Waker,
    /// Who works.
    thread: Mutex<Option<Thread>>,
}

impl Bell {
    /// The bell of the worker that has `queue`.
    pub fn new(queue: &dyn TransferQueue) -> Self {
        Self {
            state: AtomicU8::new(AWAKE),
            waker: queue.waker(),
            thread: Mutex::new(None),
        }
    }

    /// This thread is the worker from now on.
    pub fn sit(&self) {
        *self.thread.lock() = Some(std::thread::current());
    }

    /// Wakes the worker, if it sleeps or is about to. What it is woken for was told before.
    pub fn ring(&self) {
        if self.state.load(SeqCst) == AWAKE {
            return;
        }
        match self.state.swap(AWAKE, SeqCst) {
            ON_QUEUE => self.waker.wake_by_ref(),
            PARKED => {
                if let Some(thread) = &*self.thread.lock() {
                    thread.unpark();
                }
            }
            // Somebody else has rung.
            _ => {}
        }
    }

    /// Begins what was pushed, and sleeps until a transfer has ended, the bell rings, or `patience` is over. Does not sleep
    /// if `is_news`, which is asked after the bell can be heard. May return early.
    pub fn sleep(
        &self,
        queue: &mut dyn TransferQueue,
        patience: Duration,
        is_news: impl FnOnce() -> bool,
    ) {
        // Without transfers there is nothing to learn from the queue; that of a simulated device does not even sleep then.
        let has_transfers = queue.in_flight() > 0;
        let state = if has_transfers { ON_QUEUE } else { PARKED };
        self.state.store(state, SeqCst);
        match (is_news(), has_transfers) {
            (true, true) => queue.wait(Duration::ZERO),
            (true, false) => {}
            (false, true) => queue.wait(patience),
            (false, false) => std::thread::park_timeout(patience),
        }
        self.state.store(AWAKE, SeqCst);
    }
}
