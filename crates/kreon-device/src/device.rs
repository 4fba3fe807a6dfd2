//! The one seam between Kreon and what stores its bytes.

use std::io::IoSliceMut;
use std::time::Duration;

use kreon_base::Result;

use crate::file::{FileMap, MapAdvice};
use crate::stats::DeviceStats;

/// Smallest block of a device, in bytes.
pub const BLOCK_BYTES_MIN: u32 = 512;

/// Largest block of a device, in bytes: one page, so that a page can always be written alone.
pub const BLOCK_BYTES_MAX: u32 = 4096;

/// Something that stores a volume: a file, a block device, a simulation.
///
/// Every method may be called from many threads at once. Offsets, lengths and the addresses of
/// buffers are multiples of [`block_bytes`](Self::block_bytes) and ranges end within
/// [`len_bytes`](Self::len_bytes); anything else is `InvalidArgument`, and nothing is done.
///
/// Nothing is durable before a [`flush`](Self::flush) that was called after the write returned.
/// Two transfers in flight at once to overlapping ranges, one of them a write, leave either content.
pub trait Device: Send + Sync + 'static {
    /// Alignment of offsets, lengths and addresses, and the unit that a torn write cannot split from
    /// its neighbours: a power of two from [`BLOCK_BYTES_MIN`] to [`BLOCK_BYTES_MAX`].
    fn block_bytes(&self) -> u32;

    /// Present length. It never shrinks.
    fn len_bytes(&self) -> u64;

    /// How far [`grow`](Self::grow) may go: the size of a block device; for a file the limit it was
    /// opened with, or `u64::MAX`.
    fn len_bytes_max(&self) -> u64;

    /// Bytes that the device may still back with space that is free now, shared with others. `None`: nobody
    /// knows, or it has all of it.
    fn free_bytes(&self) -> Option<u64> {
        None
    }

    /// Makes the device at least `len_bytes` long. The new part reads as zeroes and takes no space
    /// yet. The new length is durable with the next flush. Over the limit: `OutOfSpace`.
    fn grow(&self, len_bytes: u64) -> Result<()>;

    /// Backs a range with real space now, so that a full disk shows here as `OutOfSpace` and not in a
    /// later write. Does nothing on a block device and where the file system cannot.
    fn allocate(&self, offset: u64, len_bytes: u64) -> Result<()>;

    /// Tells the device that a range is no longer needed. It reads as zeroes afterwards, or as
    /// before where the device cannot do this (which is not an error).
    fn discard(&self, offset: u64, len_bytes: u64) -> Result<()>;

    /// Whether the device knows without a read that a range reads as zeroes. False where it would have to look.
    fn is_blank(&self, offset: u64, len_bytes: u64) -> bool {
        let _ = (offset, len_bytes);
        false
    }

    /// Reads all of `reads` at queue depth and returns when every one has ended. Each has its
    /// outcome; the result is the first failure in the order of the slice. The buffers of a failed
    /// read hold anything.
    fn read(&self, reads: &mut [Read<'_>]) -> Result<()>;

    /// Writes all of `writes` at queue depth and returns when every one that was begun has ended.
    /// `Ok` means that all were taken in full. After an error it is unknown which were.
    fn write(&self, writes: &[Write<'_>]) -> Result<()>;

    /// Makes durable every write, growth and discard that returned before this call. After an error
    /// nothing is known about them: a second flush that succeeds proves nothing.
    fn flush(&self) -> Result<()>;

    /// What was done since the device was opened.
    fn stats(&self) -> DeviceStats;

    /// A queue for reads that go on while the caller does something else. `None` where there is no such
    /// thing.
    fn read_queue(&self) -> Option<Box<dyn ReadQueue>> {
        None
    }

    /// The bytes as the kernel shows them in memory, up to a length of `len_bytes_max`. A copy that is made
    /// after a [`write`](Self::write) has returned holds what was written. `None` where there is no such thing:
    /// direct I/O goes past what the kernel shows.
    fn map(&self, len_bytes_max: u64, advice: MapAdvice) -> Result<Option<FileMap>> {
        let _ = (len_bytes_max, advice);
        Ok(None)
    }

    /// Gives up the lock on the volume, so that it can be opened elsewhere while this device still
    /// exists. Nothing may be written through this device afterwards.
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

/// Reads that go on while the caller does something else. All methods may be called from many threads at
/// once.
pub trait ReadQueue: Send + Sync {
    /// Queues a read of consecutive bytes from `offset` on into `buffers` in turn. `tag` comes back when it
    /// has ended. False, and nothing happens, if [`depth`](Self::depth) reads are in flight already, or the
    /// queue is broken.
    ///
    /// Offset, lengths and addresses are aligned as for [`Device::read`].
    ///
    /// # Safety
    /// Until [`reap`](Self::reap) has returned the tag, the memory that `buffers` stand for and the slice
    /// `buffers` itself stay where they are, and nobody accesses them. The queue is not dropped before either.
    unsafe fn push(&self, tag: u64, offset: u64, buffers: &mut [IoSliceMut<'_>]) -> bool;

    /// Reads that were pushed, but not handed to the device.
    fn waiting(&self) -> usize;

    /// Reads that were pushed and not reaped.
    fn in_flight(&self) -> usize;

    /// Most reads in flight.
    fn depth(&self) -> usize;

    /// Hands what was pushed to the device.
    fn submit(&self);

    /// The same, then sleeps until `count` (at least one) more reads have ended or `patience` is over;
    /// perhaps shorter.
    fn wait(&self, count: usize, patience: Duration);

    /// Takes what has ended; nothing while another thread does.
    fn reap(&self, ended: &mut Vec<Ended>);

    /// Whether it takes no more reads, for good. What is in flight still ends.
    fn is_broken(&self) -> bool;
}

/// The end of a read of a [`ReadQueue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// What it was pushed with.
    pub tag: u64,
    /// Bytes that came. Fewer than asked for: read again by [`Device::read`], which tells what is wrong.
    pub moved_bytes: usize,
}

/// One read: consecutive bytes of the device into one or more buffers in turn.
#[derive(Debug)]
pub struct Read<'a> {
    /// Where the bytes start on the device.
    pub offset: u64,
    /// Filled one after the other. Merging neighbours into one read costs no copy this way.
    pub buffers: Vec<&'a mut [u8]>,
    /// How it ended. Meaningless before the call.
    pub outcome: Result<()>,
}

/// One write: one or more buffers in turn to consecutive bytes of the device.
#[derive(Clone, Debug)]
pub struct Write<'a> {
    /// Where the bytes start on the device.
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

    /// Bytes of all buffers.
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

    /// Bytes of all buffers.
    pub fn len_bytes(&self) -> u64 {
        self.buffers.iter().map(|b| b.len() as u64).sum()
    }
}
