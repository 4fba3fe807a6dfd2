//! The volume as the parts of a store see it.

use std::sync::{Arc, OnceLock};

use kreon_base::{Error, ErrorKind, Incarnation, LogId, Priority, Result, planted};
use kreon_device::Device;
use kreon_format::StoreId;
use kreon_mapping::Mapping;
use kreon_sync::Mutex;
use kreon_volume::Allocator;

use super::standby::Standby;

/// The log of all writes.
pub(super) const LOG: LogId = LogId(0);

/// The log of records that were moved.
pub(super) const MOVED: LogId = LogId(1);

/// No log: segments on standby.
pub(super) const STANDBY: LogId = LogId(2);

/// Pages of the log are evicted before all others.
pub(super) const LOG_PRIORITY: Priority = Priority(u8::MAX);

/// Device, frames, space and identity.
#[derive(Clone)]
pub(super) struct Home {
    pub device: Arc<dyn Device>,
    pub mapping: Arc<Mapping>,
    /// No other lock is taken under this one.
    pub allocator: Arc<Mutex<Allocator>>,
    pub standby: Arc<Standby>,
    pub store: StoreId,
    /// This opening of the store.
    pub incarnation: Incarnation,
    pub poison: Arc<Poison>,
    /// Held while the device flushes.
    pub flushing: Arc<Mutex<()>>,
}

impl Home {
    /// Flushes the device, one flush after the other: a system tells of a write that failed once, and what another flush that is
    /// under way then covers is not durable either.
    ///
    /// # Errors
    /// Those of the device: the store takes no more writes then.
    pub(super) fn flush(&self) -> Result<()> {
        let _turn = self.flushing.lock();
        self.poison.check()?;
        self.poison.note(self.device.flush())
    }
}

/// The error of a write that finds no space.
pub(super) fn out_of_space(what: &str) -> Error {
    let why = format!("the volume has no room left for {what}; delete data or give it more space");
    Error::new(ErrorKind::OutOfSpace, why)
}

/// Why nothing is written any more: the first write or flush that failed. It is not known what is durable since.
#[derive(Default)]
pub(super) struct Poison(OnceLock<Error>);

impl Poison {
    /// # Errors
    /// `Poisoned` with the cause.
    pub(super) fn check(&self) -> Result<()> {
        planted!(CommitAfterFailure => return Ok(()));
        match self.0.get() {
            Some(cause) => Err(Error::new(ErrorKind::Poisoned, cause.to_string())),
            None => Ok(()),
        }
    }

    /// All writing ends if the thread panics while the result lives.
    pub(super) fn on_panic(&self) -> OnPanic<'_> {
        OnPanic(self)
    }

    /// Passes an outcome on. An error ends all writing; `OutOfSpace`, which promises that nothing changed, becomes `Io`.
    pub(super) fn note<T>(&self, outcome: Result<T>) -> Result<T> {
        let outcome = outcome.map_err(|error| match error.kind() {
            ErrorKind::OutOfSpace => {
                let why = format!("a write was cut short: {error}");
                Error::new(ErrorKind::Io, why)
            }
            _ => error,
        });
        outcome.inspect_err(|error| drop(self.0.set(error.clone())))
    }
}

/// Work that leaves what is durable unknown if it is not done to its end.
pub(super) struct OnPanic<'a>(&'a Poison);

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let cause = Error::new(ErrorKind::Poisoned, "a thread of the store has panicked");
            // The first cause stays.
            let _ = self.0.note::<()>(Err(cause));
        }
    }
}
