//! Waiting in a task until records are durable.

use std::sync::Arc;
use std::task::{Context, Poll};

use kreon_base::{Lsn, Result};

use super::open::Log;
use super::waiters::{Joined, Waiter};

/// What a task keeps while it waits.
pub struct DurableWait {
    upto: Lsn,
    /// Once it waits in the queue.
    waiter: Option<Arc<Waiter>>,
}

impl DurableWait {
    /// Will wait until everything before `upto` is durable.
    pub fn new(upto: Lsn) -> Self {
        Self { upto, waiter: None }
    }
}

impl Log {
    /// Whether everything before the position that `wait` was made for is durable; if not, the task is
    /// woken when it is. The flusher makes it so, or whoever syncs; without a flusher this call does,
    /// and blocks for as long as a flush takes.
    ///
    /// # Errors
    /// As [`sync`](Log::sync); `Closed` if the log was closed before it was durable.
    pub fn poll_durable(
        &self,
        wait: &mut DurableWait,
        context: &mut Context<'_>,
    ) -> Poll<Result<()>> {
        if self.durable() >= wait.upto {
            return Poll::Ready(Ok(()));
        }
        let is_in_queue = |waiter: &Arc<Waiter>| waiter.renew(context.waker());
        if wait.waiter.as_ref().is_some_and(is_in_queue) {
            return Poll::Pending;
        }
        self.ask(wait.upto);
        match self.join(wait.upto, context.waker()) {
            Ok(Joined::Durable) => Poll::Ready(Ok(())),
            Ok(Joined::Unserved) => Poll::Ready(self.sync(wait.upto)),
            Ok(Joined::Waits(waiter)) => {
                if wait.waiter.replace(waiter).is_none() {
                    self.commit.crowd.arrive();
                }
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// Somebody will wait for `upto`: the next flush covers it.
    pub fn ask(&self, upto: Lsn) {
        self.commit.ask(upto);
    }

    /// Tasks that wait for a flush are served from now on, by a thread that calls
    /// [`serve`](Log::serve) over and over.
    pub fn begin_serving(&self) {
        self.set_served(true);
    }

    /// No thread serves tasks any more.
    pub fn end_serving(&self) {
        self.set_served(false);
    }

    /// Ends a [`serve`](Log::serve) that waits, so that its thread can look whether to go on.
    pub fn wake_flusher(&self) {
        self.commit.waiters.flusher.ring();
    }
}
