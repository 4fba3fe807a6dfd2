//! A device of which nothing is ever changed.

use std::sync::Arc;

use kreon_base::{Error, ErrorKind, Result};

use crate::device::{Device, Read, ReadQueue, Write};
#[cfg(feature = "comparison")]
use crate::file::{FileMap, MapAdvice};
use crate::stats::DeviceStats;

/// Reads another device, and refuses everything else with `ReadOnly` before it gets there: writes, growth, allocation,
/// release of space, flushes.
pub struct ReadOnlyDevice(Arc<dyn Device>);

impl ReadOnlyDevice {
    /// Over `device`.
    pub fn new(device: Arc<dyn Device>) -> Self {
        Self(device)
    }
}

/// What a call that would change something gets.
#[cold]
pub(crate) fn read_only() -> Error {
    Error::new(ErrorKind::ReadOnly, "the device is open for reading only")
}

impl Device for ReadOnlyDevice {
    fn block_bytes(&self) -> u32 {
        self.0.block_bytes()
    }

    fn len_bytes(&self) -> u64 {
        self.0.len_bytes()
    }

    /// It never grows.
    fn len_bytes_max(&self) -> u64 {
        self.0.len_bytes()
    }

    fn free_bytes(&self) -> Option<u64> {
        self.0.free_bytes()
    }

    fn grow(&self, _: u64) -> Result<()> {
        Err(read_only())
    }

    fn allocate(&self, _: u64, _: u64) -> Result<()> {
        Err(read_only())
    }

    fn discard(&self, _: u64, _: u64) -> Result<()> {
        Err(read_only())
    }

    fn is_blank(&self, offset: u64, len_bytes: u64) -> bool {
        self.0.is_blank(offset, len_bytes)
    }

    fn read(&self, reads: &mut [Read<'_>]) -> Result<()> {
        self.0.read(reads)
    }

    fn write(&self, _: &[Write<'_>]) -> Result<()> {
        Err(read_only())
    }

    fn flush(&self) -> Result<()> {
        Err(read_only())
    }

    fn stats(&self) -> DeviceStats {
        self.0.stats()
    }

    fn read_queue(&self) -> Option<Box<dyn ReadQueue>> {
        self.0.read_queue()
    }

    #[cfg(feature = "comparison")]
    fn map(&self, len_bytes_max: u64, advice: MapAdvice) -> Result<Option<FileMap>> {
        self.0.map(len_bytes_max, advice)
    }

    fn unlock(&self) -> Result<()> {
        self.0.unlock()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.0.read_at(offset, buffer)
    }
}
