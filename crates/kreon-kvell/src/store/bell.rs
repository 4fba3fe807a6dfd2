//! How a worker sleeps, and is woken.
//!
//! Who makes work tells so in a flag first and looks whether the worker is asleep then; the worker says that it is about to
//! sleep first and looks for such flags then. Both in one order of all (`SeqCst`), so one of the two sees the other. A
//! worker that is awake costs its callers a load.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};
use std::task::Waker;
use std::thread::Thread;
use std::time::Duration;

use kreon_device::TransferQueue;

const AWAKE: u8 = 0;
const ON_QUEUE: u8 = 1;
const PARKED: u8 = 2;

/// Wakes one worker.
pub struct Bell {
    state: AtomicU8,
    /// Ends a sleep for transfers.
    waker: Waker,
    /// The worker, from its first sleep on.
    thread: OnceLock<Thread>,
}

impl Bell {
    /// The bell of the worker that has `queue`.
    pub fn new(queue: &dyn TransferQueue) -> Self {
        Self {
            state: AtomicU8::new(AWAKE),
            waker: queue.waker(),
            thread: OnceLock::new(),
        }
    }

    /// Wakes the worker, if it sleeps or is about to. What it is woken for was told before.
    pub fn ring(&self) {
        if self.state.load(SeqCst) == AWAKE {
            return;
        }
        match self.state.swap(AWAKE, SeqCst) {
            ON_QUEUE => self.waker.wake_by_ref(),
            PARKED => {
                if let Some(thread) = self.thread.get() {
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
        self.thread.get_or_init(std::thread::current);
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
