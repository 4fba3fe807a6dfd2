//! Replies that come later.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use kreon_base::{Error, Result};
use kreon_device::HomeProcess;

use super::call::Call;
use crate::partition::Reply;

/// The future of a request that is under way: it began with the call that returned this. Dropped, it leaves the request
/// running and its outcome unknown.
///
/// It is woken by a worker of the store; after a failure of the volume by whichever thread meets it in a call of the store.
/// What the wake-up runs must not wait for the store: no other request of the same partitions would be answered meanwhile.
#[must_use = "the outcome of the request is known only here"]
pub struct Answer<T> {
    state: State,
    convert: fn(Option<Vec<u8>>) -> T,
    home: HomeProcess,
}

/// How far a request is.
pub enum State {
    /// It has a reply.
    Answered(Result<Option<Vec<u8>>>),
    /// It waits for one.
    Waiting(Arc<Call>),
    /// The reply was taken.
    Taken,
}

impl<T> Answer<T> {
    pub(super) fn new(state: State, convert: fn(Option<Vec<u8>>) -> T, home: HomeProcess) -> Self {
        Self {
            state,
            convert,
            home,
        }
    }
}

impl<T> Future for Answer<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // A child has nobody who would answer, and locks that nobody will release.
        self.home.check()?;
        let outcome = match std::mem::replace(&mut self.state, State::Taken) {
            State::Answered(outcome) => outcome,
            State::Waiting(call) => match call.poll(context.waker()) {
                Poll::Ready(replies) => outcome_of(replies.into_iter().next().flatten()),
                Poll::Pending => {
                    self.state = State::Waiting(call);
                    return Poll::Pending;
                }
            },
            State::Taken => Err(Error::invalid("a future was polled after its end")),
        };
        Poll::Ready(outcome.map(self.convert))
    }
}

impl State {
    /// Waits for the reply.
    pub fn wait(self) -> Result<Option<Vec<u8>>> {
        match self {
            Self::Answered(outcome) => outcome,
            Self::Waiting(call) => outcome_of(call.wait().into_iter().next().flatten()),
            Self::Taken => outcome_of(None),
        }
    }
}

impl From<Result<Self>> for State {
    fn from(asked: Result<Self>) -> Self {
        asked.unwrap_or_else(|error| Self::Answered(Err(error)))
    }
}

/// What a reply means to its caller.
pub fn outcome_of(reply: Option<Reply>) -> Result<Option<Vec<u8>>> {
    match reply {
        Some(Reply::Value(value)) => Ok(value),
        Some(Reply::Done) => Ok(None),
        Some(Reply::Failed(error)) => Err(error),
        // Unreachable: scans ask for those, and take them out themselves.
        Some(Reply::Tied(_)) => Err(Error::invalid("the reply has keys, no value")),
        // Unreachable: a call ends when it has all replies.
        None => Err(Error::invalid("the request has no reply")),
    }
}
