//! A thread that has nothing to do but to wait for tasks takes the completions of their reads itself: no
//! other thread has to run for them.

use std::cell::Cell;
use std::pin::pin;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release, SeqCst},
};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use crate::background::BackgroundReads;
use crate::mapping::Mapping;

/// How long it sleeps in the device's queue at a time: how late it may be to see that something else than a
/// read has woken its tasks.
const PATIENCE: Duration = Duration::from_millis(1);

/// The share of the reads in flight that it waits for: a system call serves several, and the device still
/// has enough to do.
const GATHER_SHARE: usize = 8;

thread_local! {
    /// The mapping whose reads this thread drives.
    static DRIVEN: Cell<*const Mapping> = const { Cell::new(ptr::null()) };
}

/// Whether this thread drives the reads of `mapping`.
pub(crate) fn is_driving(mapping: &Mapping) -> bool {
    DRIVEN.get() == ptr::from_ref(mapping)
}

/// Wakes the thread that drives.
struct Signal {
    is_woken: AtomicBool,
    thread: Thread,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_woken.swap(true, Release) && self.thread.id() != std::thread::current().id() {
            self.thread.unpark();
        }
    }
}

/// This thread drives the reads of a mapping.
struct Driving<'a> {
    reads: &'a BackgroundReads,
    before: *const Mapping,
}

impl<'a> Driving<'a> {
    fn begin(mapping: &Mapping, reads: &'a BackgroundReads) -> Self {
        reads.drivers.fetch_add(1, SeqCst);
        Self {
            reads,
            before: DRIVEN.replace(mapping),
        }
    }
}

impl Drop for Driving<'_> {
    fn drop(&mut self) {
        DRIVEN.set(self.before);
        self.reads.drivers.fetch_sub(1, SeqCst);
        // What this thread has gathered must not wait for the reactor to look.
        self.reads.flights.queue().submit();
    }
}

impl Mapping {
    /// Runs `future` in this thread, which ends the reads that the future's parts begin. Any executor will
    /// do for such futures; this one makes the fewest system calls and switches.
    pub fn drive<F: Future>(self: &Arc<Self>, future: F) -> F::Output {
        let mut future = pin!(future);
        let signal = Arc::new(Signal {
            is_woken: AtomicBool::new(true),
            thread: std::thread::current(),
        });
        let waker = Waker::from(Arc::clone(&signal));
        let mut context = Context::from_waker(&waker);
        let reads = self.background();
        let _driving = reads.map(|reads| Driving::begin(self, reads));
        loop {
            if signal.is_woken.swap(false, Acquire)
                && let Poll::Ready(output) = future.as_mut().poll(&mut context)
            {
                return output;
            }
            if signal.is_woken.load(Acquire) {
                continue;
            }
            match reads.map(|reads| (reads, reads.flights.queue().in_flight())) {
                Some((reads, in_flight)) if in_flight > 0 => {
                    let queue = reads.flights.queue();
                    queue.wait(in_flight / GATHER_SHARE, PATIENCE);
                    self.land(reads);
                }
                _ => std::thread::park(),
            }
        }
    }
}
