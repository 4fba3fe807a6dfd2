//! A device of which nothing is ever changed.

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use kreon_base::{Error, ErrorKind, Result};

use crate::device::{Device, Read, ReadQueue, Write};
#[cfg(feature = "comparison")]
use crate::file::{FileMap, MapAdvice};
use crate::stats::DeviceStats;
use crate::transfer_queue::{Transfer, TransferQueue, Transferred};

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

    fn transfer_queue(self: Arc<Self>, depth: usize) -> Box<dyn TransferQueue> {
        Box::new(ReadOnlyQueue {
            inner: Arc::clone(&self.0).transfer_queue(depth),
            refused: Vec::new(),
        })
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

/// The queue of the other device for reads; all else ends at once.
struct ReadOnlyQueue {
    inner: Box<dyn TransferQueue>,
    refused: Vec<Transferred>,
}

impl TransferQueue for ReadOnlyQueue {
    fn push(&mut self, tag: u64, transfer: Transfer) {
        match transfer {
            Transfer::Read { .. } => self.inner.push(tag, transfer),
            Transfer::Write { .. } | Transfer::Flush => {
                self.refused.push(transfer.ended(tag, Err(read_only())));
            }
        }
    }

    fn depth(&self) -> usize {
        self.inner.depth()
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight() + self.refused.len()
    }

    fn submit(&mut self) {
        self.inner.submit();
    }

    fn wait(&mut self, patience: Duration) {
        self.wait_for(1, patience);
    }

    fn wait_for(&mut self, count: usize, patience: Duration) {
        match self.refused.is_empty() {
            true => self.inner.wait_for(count, patience),
            false => self.inner.submit(),
        }
    }

    fn reap(&mut self, ended: &mut Vec<Transferred>) {
        ended.append(&mut self.refused);
        self.inner.reap(ended);
    }

    fn waker(&self) -> Waker {
        self.inner.waker()
    }
}
