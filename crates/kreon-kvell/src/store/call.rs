//! Requests of one caller, in one or more partitions, and the wait for their replies.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Poll, Waker};

use parking_lot::{Condvar, Mutex};

use crate::partition::Reply;

/// Requests that one thread or future waits for.
pub struct Call {
    state: Mutex<State>,
    is_done: Condvar,
}

struct State {
    /// Requests without a reply.
    left: usize,
    replies: Vec<Option<Reply>>,
    /// Of the future that waits.
    waker: Option<Waker>,
}

/// Who gets a reply: a call, for its request of this number.
pub struct Receiver {
    pub call: Arc<Call>,
    pub number: usize,
}

/// Replies on their way to those who wait. They are handed out after the lock of the partition was released: whom they wake
/// may come back at once. Dropped, it hands out what is left, as in a panic.
#[derive(Default)]
pub struct Answers(Vec<(Receiver, Reply)>);

impl Call {
    /// A call with so many requests.
    pub fn new(count: usize) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                left: count,
                replies: vec![None; count],
                waker: None,
            }),
            is_done: Condvar::new(),
        })
    }

    /// Sleeps until all requests were answered. The replies, in the order of the requests.
    pub fn wait(&self) -> Vec<Option<Reply>> {
        let mut state = self.state.lock();
        while state.left > 0 {
            self.is_done.wait(&mut state);
        }
        std::mem::take(&mut state.replies)
    }

    /// The replies, if all requests were answered; otherwise `waker` is called when they are.
    pub fn poll(&self, waker: &Waker) -> Poll<Vec<Option<Reply>>> {
        // Copied and dropped without the lock: what a waker runs then may be anything, a close of the store, too.
        let waker = waker.clone();
        let mut state = self.state.lock();
        if state.left == 0 {
            return Poll::Ready(std::mem::take(&mut state.replies));
        }
        let earlier = state.waker.replace(waker);
        drop(state);
        drop(earlier);
        Poll::Pending
    }

    fn answer(&self, number: usize, reply: Reply) {
        let mut state = self.state.lock();
        let Some(place) = state.replies.get_mut(number).filter(|it| it.is_none()) else {
            return;
        };
        *place = Some(reply);
        state.left -= 1;
        if state.left > 0 {
            return;
        }
        let waker = state.waker.take();
        self.is_done.notify_one();
        drop(state);
        if let Some(waker) = waker {
            // The user's code, on a thread that works for all: if it panics, the others go on.
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
    }
}

impl Answers {
    /// Adds a reply.
    pub fn push(&mut self, receiver: Receiver, reply: Reply) {
        self.0.push((receiver, reply));
    }

    /// Hands all replies to those who wait. Takes locks of calls and runs wakers of users: the caller holds no lock.
    pub fn hand_out(&mut self) {
        for (Receiver { call, number }, reply) in self.0.drain(..) {
            call.answer(number, reply);
        }
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        self.hand_out();
    }
}
