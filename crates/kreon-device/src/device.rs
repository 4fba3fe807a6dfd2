//! The interface between a store and the device that holds its bytes.

use std::io::IoSliceMut;
use std::sync::Arc;
use std::time::Duration;

use kreon_base::Result;

#[cfg(feature = "comparison")]
use crate::file::{FileMap, MapAdvice};
use crate::immediate::Immediate;
use crate::stats::DeviceStats;
use crate::transfer_queue::TransferQueue;

/// The storage of a volume: a file, a block device, or a simulation.
///
/// All methods may be called from many threads at once. Offsets, lengths and buffer addresses must be multiples of
/// [`block_bytes`](Self::block_bytes), and ranges must end within [`len_bytes`](Self::len_bytes); otherwise a call
/// fails with `InvalidArgument` and has no effect.
///
/// A write is durable only after a [`flush`](Self::flush) that was called after the write returned. If two transfers in
/// flight overlap and one is a write, the result is either content.
pub trait Device: Send + Sync + 'static {
    /// Alignment of offsets, lengths and addresses, and the unit of torn writes: a torn write changes no other block. A
    /// power of two from [`BLOCK_BYTES_MIN`](crate::BLOCK_BYTES_MIN) to [`BLOCK_BYTES_MAX`](crate::BLOCK_BYTES_MAX).
    fn block_bytes(&self) -> u32;

    /// Current length in bytes. It never shrinks.
    fn len_bytes(&self) -> u64;

    /// Limit of [`grow`](Self::grow): the size of a block device; for a file the limit given at the opening, or
    /// `u64::MAX`.
    fn len_bytes_max(&self) -> u64;

    /// Free bytes that the device can still allocate, shared with other users of the file system. `None`: unknown, or
    /// the device has all its space already.
    fn free_bytes(&self) -> Option<u64> {
        None
    }

    /// Makes the device at least `len_bytes` long. The new part reads as zeroes and takes no space yet; the new length
    /// is durable after the next flush. `OutOfSpace` beyond the limit.
    fn grow(&self, len_bytes: u64) -> Result<()>;

    /// Allocates blocks for a range, so that a full disk fails here with `OutOfSpace` and not in a later write. No
    /// effect on a block device, or where the file system cannot do it.
    fn allocate(&self, offset: u64, len_bytes: u64) -> Result<()>;

    /// Releases a range. It reads as zeroes afterwards; where the device cannot do this, the call succeeds and the
    /// range is unchanged.
    fn discard(&self, offset: u64, len_bytes: u64) -> Result<()>;

    /// Whether the device knows without I/O that a range reads as zeroes. `false` if it would have to read.
    fn is_blank(&self, offset: u64, len_bytes: u64) -> bool {
        let _ = (offset, len_bytes);
        false
    }

    /// Reads all of `reads` at queue depth and returns when all have ended. Each has its own outcome; the result is the
    /// first failure in the order of the slice. A failed read leaves arbitrary bytes in its buffers.
    fn read(&self, reads: &mut [Read<'_>]) -> Result<()>;

    /// Writes all of `writes` at queue depth and returns when all begun writes have ended. `Ok`: all were written in
    /// full. After an error it is unknown which were.
    fn write(&self, writes: &[Write<'_>]) -> Result<()>;

    /// Makes durable all writes, growth and discards that returned before this call. After an error their state is
    /// unknown, and a later flush that succeeds does not change that.
    fn flush(&self) -> Result<()>;

    /// Counters since the opening.
    fn stats(&self) -> DeviceStats;

    /// A queue for asynchronous reads; `None` if the device has none.
    fn read_queue(&self) -> Option<Box<dyn ReadQueue>> {
        None
    }

    /// A queue for transfers that are in flight together, up to `depth` of them (1 to 4096; others are taken for the
    /// nearest). By default, and where the system has no rings, each transfer is carried out when it is submitted, by a
    /// call that waits.
    ///
    /// The queue keeps the device open.
    fn transfer_queue(self: Arc<Self>, depth: usize) -> Box<dyn TransferQueue> {
        Box::new(Immediate::new(self, depth))
    }

    /// Maps the bytes into memory, up to a length of `len_bytes_max`. A copy made after a [`write`](Self::write) has
    /// returned holds what was written. `None` if the device cannot map, for one because direct I/O bypasses the page
    /// cache.
    #[cfg(feature = "comparison")]
    fn map(&self, len_bytes_max: u64, advice: MapAdvice) -> Result<Option<FileMap>> {
        let _ = (len_bytes_max, advice);
        Ok(None)
    }

    /// Releases the lock on the volume, so that it can be opened elsewhere while this device still exists. Nothing may
    /// be written through this device afterwards.
    fn unlock(&self) -> Result<()> {
        Ok(())
    }

    /// Reads one range.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.read(&mut [Read::new(offset, buffer)])
    }

    /// Writes one range.
    fn write_at(&self, offset: u64, buffer: &[u8]) -> Result<()> {
        self.write(&[Write::new(offset, buffer)])
    }
}

/// A queue of asynchronous reads. All methods may be called from many threads at once.
pub trait ReadQueue: Send + Sync {
    /// Queues a read of consecutive bytes from `offset` on into `buffers`, in their order; [`reap`](Self::reap) returns
    /// `tag` when it has ended. Returns `false` without effect if [`depth`](Self::depth) reads are in flight or the
    /// queue is broken.
    ///
    /// Offset, lengths and addresses are aligned as for [`Device::read`].
    ///
    /// # Safety
    /// Until [`reap`](Self::reap) has returned the tag, the memory behind `buffers` and the slice `buffers` itself must
    /// stay in place, nobody may access them, and the queue must not be dropped.
    unsafe fn push(&self, tag: u64, offset: u64, buffers: &mut [IoSliceMut<'_>]) -> bool;

    /// Reads that were pushed but not yet submitted to the device.
    fn waiting(&self) -> usize;

    /// Reads that were pushed but not yet reaped.
    fn in_flight(&self) -> usize;

    /// Most reads in flight.
    fn depth(&self) -> usize;

    /// Submits the pushed reads to the device.
    fn submit(&self);

    /// Submits, then sleeps until `count` (at least one) more reads have ended or `patience` is over. It may return
    /// early.
    fn wait(&self, count: usize, patience: Duration);

    /// Moves the completed reads into `ended`; does nothing while another thread reaps.
    fn reap(&self, ended: &mut Vec<Ended>);

    /// Whether the queue accepts no more reads, ever. Reads in flight still end.
    fn is_broken(&self) -> bool;
}

/// A completed read of a [`ReadQueue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The tag that the read was pushed with.
    pub tag: u64,
    /// Bytes read. Fewer than requested: read again with [`Device::read`], which returns the error.
    pub moved_bytes: usize,
}

/// One read: consecutive bytes of the device into one or more buffers, in their order.
#[derive(Debug)]
pub struct Read<'a> {
    /// First byte on the device.
    pub offset: u64,
    /// Filled one after the other, so that neighbouring ranges can be merged into one read without a copy.
    pub buffers: Vec<&'a mut [u8]>,
    /// The result, valid after the call.
    pub outcome: Result<()>,
}

/// One write: one or more buffers, in their order, to consecutive bytes of the device.
#[derive(Clone, Debug)]
pub struct Write<'a> {
    /// First byte on the device.
    pub offset: u64,
    /// Written one after the other.
    pub buffers: Vec<&'a [u8]>,
}

impl<'a> Read<'a> {
    /// A read into one buffer.
    pub fn new(offset: u64, buffer: &'a mut [u8]) -> Self {
        Self::vectored(offset, vec![buffer])
    }

    /// A read into several buffers.
    pub fn vectored(offset: u64, buffers: Vec<&'a mut [u8]>) -> Self {
        Self {
            offset,
            buffers,
            outcome: Ok(()),
        }
    }

    /// Total length of the buffers.
    pub fn len_bytes(&self) -> u64 {
        self.buffers.iter().map(|b| b.len() as u64).sum()
    }
}

impl<'a> Write<'a> {
    /// A write from one buffer.
    pub fn new(offset: u64, buffer: &'a [u8]) -> Self {
        Self::vectored(offset, vec![buffer])
    }

    /// A write from several buffers.
    pub fn vectored(offset: u64, buffers: Vec<&'a [u8]>) -> Self {
        Self { offset, buffers }
    }

    /// Total length of the buffers.
    pub fn len_bytes(&self) -> u64 {
        self.buffers.iter().map(|b| b.len() as u64).sum()
    }
}
