//! Asynchronous gets.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use kreon_engine::{Engine, GetTask, Own};

use crate::{Error, Result, Value};

/// A get in progress. Made by [`Region::get_async`](crate::Region::get_async) and
/// [`Snapshot::get_async`](crate::Snapshot::get_async).
#[must_use = "a get does nothing until it is polled"]
pub struct GetAsync<K> {
    task: Result<GetTask, Error>,
    key: K,
    /// Keeps the store open.
    _engine: Arc<Engine>,
}

impl<K> GetAsync<K> {
    pub(crate) fn new(engine: &Arc<Engine>, task: Result<GetTask, Error>, key: K) -> Self {
        Self {
            task,
            key,
            _engine: Arc::clone(engine),
        }
    }
}

impl<K: AsRef<[u8]> + Unpin> Future for GetAsync<K> {
    type Output = Result<Option<Value>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { task, key, .. } = &mut *self;
        match task {
            Ok(task) => task
                .poll(key.as_ref(), context.waker(), Own)
                .map_ok(|found| found.map(Value::from)),
            Err(error) => Poll::Ready(Err(error.clone())),
        }
    }
}

impl<K> fmt::Debug for GetAsync<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GetAsync").finish_non_exhaustive()
    }
}
