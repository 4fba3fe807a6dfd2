//! A thread that runs a future and takes the completions of its reads itself, so that no other thread has to run for
//! them.

use std::cell::Cell;
use std::pin::pin;
use std::ptr;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::in_flight::InFlight;
use super::land::land;
use super::wakeup::Wakeup;
use crate::read::PageReader;

/// How long the thread sleeps in the device's queue at a time: how late it may notice that something other than a read
/// has woken its tasks.
const PATIENCE: Duration = Duration::from_millis(1);

/// The share of the reads in flight that the thread waits for: a system call serves several, and the device still has
/// enough to do.
const GATHER_SHARE: usize = 8;

thread_local! {
    /// The reads that this thread drives.
    static DRIVEN: Cell<*const InFlight> = const { Cell::new(ptr::null()) };
}

/// Whether this thread drives these reads.
pub(super) fn is_driving(in_flight: &InFlight) -> bool {
    DRIVEN.get() == ptr::from_ref(in_flight)
}

/// Marks this thread as driving reads, until dropped.
struct Driving<'a> {
    in_flight: &'a InFlight,
    before: *const InFlight,
}

impl<'a> Driving<'a> {
    fn begin(in_flight: &'a InFlight) -> Self {
        in_flight.add_driver();
        Self {
            in_flight,
            before: DRIVEN.replace(in_flight),
        }
    }
}

impl Drop for Driving<'_> {
    fn drop(&mut self) {
        DRIVEN.set(self.before);
        self.in_flight.remove_driver();
        // Reads that this thread has gathered must not wait for the reactor.
        self.in_flight.queue().submit();
    }
}

/// Runs `future` in this thread, which ends the reads that the future's parts begin.
pub(super) fn drive<F: Future>(
    reader: &PageReader,
    in_flight: Option<&InFlight>,
    future: F,
) -> F::Output {
    let mut future = pin!(future);
    let wakeup = Arc::new(Wakeup::default());
    wakeup.attach();
    // The first poll.
    wakeup.call();
    let waker = Waker::from(Arc::clone(&wakeup));
    let mut context = Context::from_waker(&waker);
    let _driving = in_flight.map(Driving::begin);
    loop {
        if wakeup.take()
            && let Poll::Ready(output) = future.as_mut().poll(&mut context)
        {
            return output;
        }
        if wakeup.is_called() {
            continue;
        }
        match in_flight.map(|in_flight| (in_flight, in_flight.queue().in_flight())) {
            Some((in_flight, count)) if count > 0 => {
                in_flight.queue().wait(count / GATHER_SHARE, PATIENCE);
                land(reader, in_flight);
            }
            _ => wakeup.sleep(),
        }
    }
}
