//! What all handles of a region share.

use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};

use kreon_base::{Error, ErrorKind, Result};

/// A region: its number, and whether it is there still.
pub(super) struct RegionState {
    pub number: u32,
    pub name: Box<str>,
    is_dropped: AtomicBool,
}

impl RegionState {
    pub(super) fn new(number: u32, name: &str) -> Self {
        Self {
            number,
            name: name.into(),
            is_dropped: AtomicBool::new(false),
        }
    }

    /// From now on it is not to be used any more.
    pub(super) fn drop_for_ever(&self) {
        self.is_dropped.store(true, Release);
    }

    /// # Errors
    /// `Closed` if it was dropped.
    #[inline]
    pub(super) fn check(&self) -> Result<()> {
        match self.is_dropped.load(Acquire) {
            false => Ok(()),
            true => Err(self.gone()),
        }
    }

    #[cold]
    fn gone(&self) -> Error {
        Error::new(
            ErrorKind::Closed,
            format!("region {:?} was dropped", self.name),
        )
    }
}
