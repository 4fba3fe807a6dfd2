//! Waiting in a task until records are durable.

use std::sync::Arc;
use std::task::{Context, Poll};

use kreon_base::{Lsn, Result};

use super::group_commit::GroupCommit;
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

    /// See [`Log::poll_durable`](super::Log::poll_durable).
    pub(super) fn poll(
        &mut self,
        commit: &GroupCommit,
        context: &mut Context<'_>,
    ) -> Poll<Result<()>> {
        if commit.durable() >= self.upto {
            return Poll::Ready(Ok(()));
        }
        let is_in_queue = |waiter: &Arc<Waiter>| waiter.renew(context.waker());
        if self.waiter.as_ref().is_some_and(is_in_queue) {
            return Poll::Pending;
        }
        commit.ask(self.upto);
        match commit.waiters().join(self.upto, context.waker()) {
            Ok(Joined::Durable) => Poll::Ready(Ok(())),
            Ok(Joined::Unserved) => Poll::Ready(commit.sync(self.upto)),
            Ok(Joined::Waits(waiter)) => {
                if self.waiter.replace(waiter).is_none() {
                    commit.arrive();
                }
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}
