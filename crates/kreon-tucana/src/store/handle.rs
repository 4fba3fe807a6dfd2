//! What all handles of a store hold: the store itself, until one of them closes it.

use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use kreon_base::{Error, ErrorKind, Result};
use kreon_device::Device;
use kreon_sync::Mutex;

use super::regions::Regions;
use super::shared::Shared;
use super::threads::Threads;

/// How long a close waits before it looks again whether calls are under way.
const LOOK_AGAIN: Duration = Duration::from_micros(50);

/// An open store. Dropped, its threads end; nothing is committed.
pub(super) struct Core {
    pub shared: Arc<Shared>,
    pub regions: Regions,
    pub _threads: Threads,
}

/// A store, which is closed at the latest when nobody holds this.
pub(super) struct Handle {
    core: ArcSwapOption<Core>,
    /// Outcome of the close. Locked while the store is being closed.
    closed: Mutex<Option<Result<()>>>,
}

impl Handle {
    pub(super) fn new(core: Core) -> Self {
        Self {
            core: ArcSwapOption::from_pointee(core),
            closed: Mutex::default(),
        }
    }

    /// Lends the store to a call, which a close waits for.
    ///
    /// # Errors
    /// `Closed`; those of the call.
    #[inline]
    pub(super) fn with<R>(&self, call: impl FnOnce(&Core) -> Result<R>) -> Result<R> {
        match &*self.core.load() {
            Some(core) => call(core),
            None => Err(closed()),
        }
    }

    /// Ends the store for all handles: calls that are under way end first, and then everything becomes durable. A further close waits
    /// for the first and has its outcome.
    ///
    /// # Errors
    /// Those of a commit; `Io` if the device cannot be unlocked.
    pub(super) fn close(&self) -> Result<()> {
        let mut outcome = self.closed.lock();
        if let Some(outcome) = &*outcome {
            return outcome.clone();
        }
        let mut core = self.core.swap(None).ok_or_else(closed)?;
        let core = loop {
            match Arc::try_unwrap(core) {
                Ok(core) => break core,
                Err(in_use) => core = in_use,
            }
            sleep(LOOK_AGAIN);
        };
        let committed = core.shared.commit();
        let device: Arc<dyn Device> = Arc::clone(&core.shared.home.device);
        drop(core);
        let ended = committed.and(device.unlock());
        *outcome = Some(ended.clone());
        ended
    }
}

#[cold]
fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the store is closed")
}
