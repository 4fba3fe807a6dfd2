//! The interface for transfers in flight together, in one thread.

use std::task::Waker;
use std::time::Duration;

use kreon_base::{Error, Result};

use crate::aligned_buf::AlignedBuf;

/// Most transfers that a queue has in flight; a larger depth is taken for this one.
pub(crate) const QUEUE_DEPTH_MAX: usize = 4096;

/// One operation for a [`TransferQueue`], with the buffer for it.
#[derive(Debug)]
pub enum Transfer {
    /// Bytes of the device into a buffer.
    Read {
        /// First byte on the device.
        offset: u64,
        /// Its first `len_bytes` are filled; arbitrary after a failure.
        buffer: AlignedBuf,
        /// Bytes to read, at most the length of `buffer`.
        len_bytes: usize,
    },
    /// Bytes of a buffer to the device.
    Write {
        /// First byte on the device.
        offset: u64,
        /// Its first `len_bytes` are written.
        buffer: AlignedBuf,
        /// Bytes to write, at most the length of `buffer`.
        len_bytes: usize,
    },
    /// A flush.
    Flush,
}

/// A transfer that ended.
#[derive(Debug)]
pub struct Transferred {
    /// What it was pushed with.
    pub tag: u64,
    /// As of [`Device::read`](crate::Device::read), [`write`](crate::Device::write) or
    /// [`flush`](crate::Device::flush). A failed transfer says nothing about others.
    pub outcome: Result<()>,
    /// The buffer that it was pushed with; `None` for a flush.
    pub buffer: Option<AlignedBuf>,
}

/// Reads, writes and flushes in flight together, driven by one thread at a time. Another may go on with the queue at any
/// moment: what is in flight does not belong to a thread.
///
/// A transfer is *pushed*, *submitted*, and *reaped* when it has ended; each comes back exactly once. There is no order
/// among those in flight: if two overlap and one is a write, the result is either content. A flush makes durable the
/// writes that had been reaped before it was pushed, and perhaps others.
///
/// The queue owns the buffers meanwhile. Dropped, it waits for what it has begun; the rest is not carried out.
pub trait TransferQueue: Send {
    /// Adds a transfer; the next [`submit`](Self::submit) or [`wait`](Self::wait) begins it. Without
    /// [`room`](Self::room) it stays behind until others have ended. Whatever is wrong with it is told by its outcome.
    ///
    /// Offset and length are aligned as for [`Device::read`](crate::Device::read); buffers always are.
    fn push(&mut self, tag: u64, transfer: Transfer);

    /// Most transfers in flight.
    fn depth(&self) -> usize;

    /// Transfers that were pushed and not yet reaped.
    fn in_flight(&self) -> usize;

    /// Begins what was pushed, and does not wait for it where the device has rings.
    fn submit(&mut self);

    /// Submits, then sleeps until there is something to reap, the [`waker`](Self::waker) was called since the last wait,
    /// or `patience` is over. It may return early, and late by the time of one short read or write: one that has nothing
    /// else in flight beside it is carried out here by a plain call, which is quicker. With no patience it asks the
    /// device without a sleep.
    fn wait(&mut self, patience: Duration);

    /// As [`wait`](Self::wait), but sleeps on until `count` transfers can be reaped, a wake-up counting as one, or `patience` is
    /// over: a thread with many transfers in flight is woken, and submits, once for several of them. Where the device has no
    /// rings it is the same as [`wait`](Self::wait).
    fn wait_for(&mut self, count: usize, patience: Duration) {
        let _ = count;
        self.wait(patience);
    }

    /// Moves what has ended to the end of `ended`. It does not ask the device, as [`wait`](Self::wait) does.
    fn reap(&mut self, ended: &mut Vec<Transferred>);

    /// Ends a [`wait`](Self::wait) of any thread, the next one if none is waiting; several calls may end only one. One
    /// system call where the device has rings. It may outlive the queue.
    fn waker(&self) -> Waker;

    /// Transfers that may be pushed until [`depth`](Self::depth) of them are in flight.
    fn room(&self) -> usize {
        self.depth().saturating_sub(self.in_flight())
    }

    /// Pushes a read of `len_bytes` from `offset` on into the start of `buffer`.
    fn read(&mut self, tag: u64, offset: u64, buffer: AlignedBuf, len_bytes: usize) {
        let read = Transfer::Read {
            offset,
            buffer,
            len_bytes,
        };
        self.push(tag, read);
    }

    /// Pushes a write of the first `len_bytes` of `buffer` to `offset`.
    fn write(&mut self, tag: u64, offset: u64, buffer: AlignedBuf, len_bytes: usize) {
        let write = Transfer::Write {
            offset,
            buffer,
            len_bytes,
        };
        self.push(tag, write);
    }

    /// Pushes a flush, which speaks for the writes that were reaped before this call.
    fn flush(&mut self, tag: u64) {
        self.push(tag, Transfer::Flush);
    }
}

impl Transfer {
    /// Where on the device, and the part of the buffer; `None` for a flush.
    ///
    /// # Errors
    /// `InvalidArgument` if the buffer is shorter than the transfer.
    pub fn bytes(&self) -> Result<Option<(u64, &[u8])>> {
        let (Self::Read {
            offset,
            buffer,
            len_bytes,
        }
        | Self::Write {
            offset,
            buffer,
            len_bytes,
        }) = self
        else {
            return Ok(None);
        };
        match buffer.get(..*len_bytes) {
            Some(bytes) => Ok(Some((*offset, bytes))),
            None => Err(Error::invalid(format!(
                "the buffer for {len_bytes} bytes at {offset} has {}",
                buffer.len()
            ))),
        }
    }

    /// Whether it has nothing to do: it moves no bytes and is no flush.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Read { len_bytes, .. } | Self::Write { len_bytes, .. } => *len_bytes == 0,
            Self::Flush => false,
        }
    }

    /// The transfer at its end.
    pub fn ended(self, tag: u64, outcome: Result<()>) -> Transferred {
        let buffer = match self {
            Self::Read { buffer, .. } | Self::Write { buffer, .. } => Some(buffer),
            Self::Flush => None,
        };
        Transferred {
            tag,
            outcome,
            buffer,
        }
    }
}
