//! Transfers between buffers and a file: batches, and two engines that execute them.

mod batch;
mod positioned;
mod queue;
mod ring;
mod ring_pool;
mod slice;

pub(crate) use batch::TransferBatch;
pub(crate) use queue::RingQueue;
pub(crate) use ring_pool::RingPool;
pub(crate) use slice::Slice;

use std::os::fd::BorrowedFd;

use crate::stats::DeviceCounters;

/// Executes all of `batch`, on a ring if there is one and the batch has several pieces.
pub(crate) fn run<S: Slice>(
    batch: &mut TransferBatch<S>,
    file: BorrowedFd<'_>,
    rings: &RingPool,
    counters: &DeviceCounters,
) {
    // A single transfer has nothing to overlap with, and a plain system call is cheaper than a ring.
    if batch.len() > 1
        && let Some(mut ring) = rings.take()
    {
        ring.run(file, batch, counters);
        rings.put(ring);
    }
    // Executes the pieces still open: all without a ring; none after a ring, unless it broke.
    positioned::run(file, batch, counters);
}
