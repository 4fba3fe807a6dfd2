//! How a task learns of the end of what it began.

use std::sync::Arc;
use std::task::{Poll, Waker};

use kreon_base::Result;
use parking_lot::Mutex;

/// Loads that a task began and waits for. Dropping it changes nothing for the loads.
#[derive(Debug)]
pub struct Ticket(Arc<Shared>);

/// The side of the loads.
pub(crate) struct Stub(Arc<Shared>);

#[derive(Debug)]
struct Shared(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Loads that have not ended.
    left: usize,
    outcome: Result<()>,
    waker: Option<Waker>,
}

impl Ticket {
    /// For loads whose number is not known yet; until [`Self::close`] says it, the ticket waits.
    pub(crate) fn new(waker: &Waker) -> Self {
        let state = State {
            left: 1,
            outcome: Ok(()),
            waker: Some(waker.clone()),
        };
        Self(Arc::new(Shared(Mutex::new(state))))
    }

    /// For one more load.
    pub(crate) fn stub(&self) -> Stub {
        self.0.0.lock().left += 1;
        Stub(Arc::clone(&self.0))
    }

    /// There are no more loads to come. Returns whom to wake if all have ended already.
    pub(crate) fn close(&self) -> Option<Waker> {
        self.0.end(Ok(()))
    }

    /// Whether all have ended; the first error if there was one. `waker` is the one that is called then.
    pub fn poll(&self, waker: &Waker) -> Poll<Result<()>> {
        let mut state = self.0.0.lock();
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

impl Stub {
    /// A load has ended. Returns whom to wake, without any lock.
    pub(crate) fn end(self, outcome: Result<()>) -> Option<Waker> {
        self.0.end(outcome)
    }
}

impl Shared {
    fn end(&self, outcome: Result<()>) -> Option<Waker> {
        let mut state = self.0.lock();
        state.left -= 1;
        if state.outcome.is_ok() {
            state.outcome = outcome;
        }
        let is_last = state.left == 0;
        state.waker.take_if(|_| is_last)
    }
}
