//! A device that notes its transfers.

use std::sync::{Mutex, PoisonError};

use kreon_device::{Device, DeviceStats, Read, Write};

use crate::randomness::Trace;

/// Passes everything on to `inner`.
pub struct Watched<D> {
    inner: D,
    trace: Mutex<Trace>,
}

impl<D: Device> Watched<D> {
    /// Watches `inner`.
    pub fn new(inner: D) -> Self {
        Self {
            inner,
            trace: Mutex::default(),
        }
    }

    /// The transfers since the last call.
    pub fn take(&self) -> Trace {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Trace> {
        // Sums are right after any panic.
        self.trace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<D: Device> Device for Watched<D> {
    fn block_bytes(&self) -> u32 {
        self.inner.block_bytes()
    }

    fn len_bytes(&self) -> u64 {
        self.inner.len_bytes()
    }

    fn len_bytes_max(&self) -> u64 {
        self.inner.len_bytes_max()
    }

    fn grow(&self, len_bytes: u64) -> kreon::Result<()> {
        self.inner.grow(len_bytes)
    }

    fn allocate(&self, offset: u64, len_bytes: u64) -> kreon::Result<()> {
        self.inner.allocate(offset, len_bytes)
    }

    fn discard(&self, offset: u64, len_bytes: u64) -> kreon::Result<()> {
        self.inner.discard(offset, len_bytes)
    }

    fn read(&self, reads: &mut [Read<'_>]) -> kreon::Result<()> {
        let mut trace = self.lock();
        for read in reads.iter() {
            trace.push(read.offset, read.len_bytes(), false);
        }
        drop(trace);
        self.inner.read(reads)
    }

    fn write(&self, writes: &[Write<'_>]) -> kreon::Result<()> {
        let mut trace = self.lock();
        for write in writes {
            trace.push(write.offset, write.len_bytes(), true);
        }
        drop(trace);
        self.inner.write(writes)
    }

    fn flush(&self) -> kreon::Result<()> {
        self.inner.flush()
    }

    fn stats(&self) -> DeviceStats {
        self.inner.stats()
    }

    fn unlock(&self) -> kreon::Result<()> {
        self.inner.unlock()
    }
}
