//! Writes that do not wait: a future ends when they are durable.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use kreon_base::{Lsn, Result};

use super::core::Core;
use super::open::Engine;
use super::write::Operation;
use crate::log::DurableWait;
use crate::sync::Ordering;

/// A write that has happened: readers see it. The future ends when it survives any crash, or with the
/// error that the write was refused with.
///
/// It runs in any executor, or in none: it needs no runtime. All futures and all `Sync` writers that
/// wait at the same time share a flush, so thousands may be under way in one thread. The first poll asks
/// for the flush; the background thread of the store does it. Dropping the future undoes nothing: the
/// write is then like a buffered one. A waker must not call into the store: the one that leads the flush
/// may hold locks.
///
/// # Errors
/// Of a write that was refused, those of a buffered one: nothing was applied. Else `Poisoned` if the
/// device failed, and `Closed` if the store was closed and could not make it durable: the write may
/// or may not survive.
#[must_use = "a write is durable only when its future has ended"]
pub struct Durable(State);

enum State {
    /// Nothing was applied.
    Refused(kreon_base::Error),
    Waits {
        core: Arc<Core>,
        wait: DurableWait,
    },
}

impl Durable {
    fn new(core: &Arc<Core>, applied: Result<Lsn>) -> Self {
        Self(match applied {
            Ok(upto) => {
                // Futures that are made together and polled one after the other share a flush.
                core.parts.log.ask(upto);
                State::Waits {
                    core: Arc::clone(core),
                    wait: DurableWait::new(upto),
                }
            }
            Err(error) => State::Refused(error),
        })
    }

    /// The future of a write that was refused.
    pub fn refused(error: kreon_base::Error) -> Self {
        Self(State::Refused(error))
    }
}

impl Future for Durable {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        match &mut self.0 {
            State::Refused(error) => Poll::Ready(Err(error.clone())),
            State::Waits { core, .. } if !core.home.is_this() => Poll::Ready(core.home.check()),
            State::Waits { core, wait } => core
                .parts
                .log
                .poll_durable(wait, context)
                .map_err(|error| core.note(error)),
        }
    }
}

impl std::fmt::Debug for Durable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Durable").finish_non_exhaustive()
    }
}

impl Engine {
    /// Applies a unit now; the future ends when it is durable.
    pub fn write_async(&self, operations: &[Operation<'_>]) -> Durable {
        self.core().parts.log.expect_wait();
        Durable::new(self.core(), self.core().write_ahead(operations))
    }

    /// The future ends when all writes so far are durable.
    pub fn sync_async(&self) -> Durable {
        let core = self.core();
        Durable::new(core, core.check_writable().map(|()| core.parts.log.tail()))
    }
}

impl Core {
    /// The body of the thread that flushes for tasks.
    pub fn flush_loop(self: &Arc<Self>) {
        /// Also if a device panics: no task waits for a thread that is gone.
        struct Serving<'a>(&'a Core);
        impl Drop for Serving<'_> {
            fn drop(&mut self) {
                self.0.parts.log.end_serving();
            }
        }
        let log = &self.parts.log;
        log.begin_serving();
        let _serving = Serving(self);
        while !self.closed.load(Ordering::Acquire) {
            if let Err(error) = log.serve() {
                self.note(error);
            }
        }
    }

    /// Stops all writing after a failure of the log.
    fn note(&self, error: kreon_base::Error) -> kreon_base::Error {
        if error.kind() != kreon_base::ErrorKind::Closed {
            self.parts.poison.set(&error);
        }
        error
    }
}
