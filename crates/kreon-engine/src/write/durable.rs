//! Writes that do not wait: a future ends when they are durable.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use kreon_base::{Lsn, Result};

use crate::state::Storage;
use kreon_log::DurableWait;

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
        storage: Arc<Storage>,
        wait: DurableWait,
    },
}

impl Durable {
    /// Of a write that went up to a position, or was refused.
    pub fn new(storage: &Arc<Storage>, applied: Result<Lsn>) -> Self {
        Self(match applied {
            Ok(upto) => {
                // Futures that are made together and polled one after the other share a flush.
                storage.log.ask(upto);
                State::Waits {
                    storage: Arc::clone(storage),
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
            State::Waits { storage, .. } if !storage.lifecycle.is_home() => {
                Poll::Ready(storage.lifecycle.check_home())
            }
            State::Waits { storage, wait } => {
                storage.log.poll_durable(wait, context).map_err(|error| {
                    storage.poison.set(&error);
                    error
                })
            }
        }
    }
}

impl std::fmt::Debug for Durable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Durable").finish_non_exhaustive()
    }
}
