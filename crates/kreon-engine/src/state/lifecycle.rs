//! Whether a store may be used: it is open, and this is the process that opened it.

use kreon_base::Result;
use kreon_device::HomeProcess;
use kreon_log::closed;
use kreon_sync::{AtomicBool, Ordering};

/// From open to closed, once.
pub struct Lifecycle {
    /// In a forked child nothing of the store is touched: threads of the parent may have held any of its locks.
    home: HomeProcess,
    is_closed: AtomicBool,
}

impl Lifecycle {
    /// Of a store that this process opens.
    pub fn begin() -> Self {
        Self {
            home: HomeProcess::this(),
            is_closed: AtomicBool::new(false),
        }
    }

    /// Whether this is the process that opened the store.
    pub fn is_home(&self) -> bool {
        self.home.is_this()
    }

    /// # Errors
    /// `Closed` in a process that was forked from the one that opened the store.
    pub fn check_home(&self) -> Result<()> {
        self.home.check()
    }

    /// # Errors
    /// `Closed` after the store was closed, and in a process that was forked from the one that opened it.
    pub fn check_open(&self) -> Result<()> {
        self.home.check()?;
        match self.is_closed() {
            true => Err(closed()),
            false => Ok(()),
        }
    }

    /// Whether the store was closed. Background threads end then.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Closes the store; whether it was open.
    pub fn close(&self) -> bool {
        !self.is_closed.swap(true, Ordering::AcqRel)
    }
}
