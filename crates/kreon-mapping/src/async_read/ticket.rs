//! How a task learns of the end of the reads that it began.
//!
//! A ticket is ready when it is closed and every sender of it has ended.

use std::sync::Arc;
use std::task::{Poll, Waker};

use kreon_base::Result;
use parking_lot::Mutex;

/// Loads that a task began and waits for. Dropping it changes nothing for the loads.
#[derive(Debug)]
pub struct Ticket(Arc<Mutex<TicketState>>);

/// Tells a ticket of the end of one read.
pub(super) struct TicketSender(Arc<Mutex<TicketState>>);

#[derive(Debug)]
struct TicketState {
    /// Reads that have not ended, and one for a ticket that is not closed.
    left: usize,
    outcome: Result<()>,
    waker: Option<Waker>,
}

impl Ticket {
    /// A ticket that waits until it is [closed](Self::close), for reads whose number is not known yet.
    pub(super) fn new(waker: &Waker) -> Self {
        let state = TicketState {
            left: 1,
            outcome: Ok(()),
            waker: Some(waker.clone()),
        };
        Self(Arc::new(Mutex::new(state)))
    }

    /// A sender for one more read.
    pub(super) fn sender(&self) -> TicketSender {
        let mut state = self.0.lock();
        debug_assert!(state.left > 0, "a read is added to a ticket that is ready");
        state.left += 1;
        TicketSender(Arc::clone(&self.0))
    }

    /// No more reads will be added. Returns the waker to call if all have ended already.
    pub(super) fn close(&self) -> Option<Waker> {
        self.0.lock().end(Ok(()))
    }

    /// Whether all have ended; the first error if there was one. `waker` is the one that is called then.
    pub fn poll(&self, waker: &Waker) -> Poll<Result<()>> {
        let mut state = self.0.lock();
        if state.left == 0 {
            return Poll::Ready(state.outcome.clone());
        }
        match &mut state.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        Poll::Pending
    }
}

impl TicketSender {
    /// The read has ended. Returns the waker to call, while no lock is held, if it was the last.
    pub(super) fn end(self, outcome: Result<()>) -> Option<Waker> {
        self.0.lock().end(outcome)
    }
}

impl TicketState {
    fn end(&mut self, outcome: Result<()>) -> Option<Waker> {
        debug_assert!(self.left > 0, "more reads end than were begun");
        self.left -= 1;
        if self.outcome.is_ok() {
            self.outcome = outcome;
        }
        let is_last = self.left == 0;
        self.waker.take_if(|_| is_last)
    }
}
