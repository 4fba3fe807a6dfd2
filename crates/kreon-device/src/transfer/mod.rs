//! Moving bytes between buffers and a file: a batch of transfers, and two engines that carry it out.

mod batch;
mod positioned;
mod queue;
mod ring;
mod ring_pool;
mod slice;

pub(crate) use batch::Batch;
pub(crate) use queue::RingQueue;
pub(crate) use ring_pool::RingPool;
pub(crate) use slice::Slice;

use std::os::fd::BorrowedFd;

use crate::stats::Counters;

/// Carries out all of `batch`, on a ring if that pays and one is to be had.
pub(crate) fn run<S: Slice>(
    batch: &mut Batch<S>,
    file: BorrowedFd<'_>,
    rings: &RingPool,
    counters: &Counters,
) {
    // A transfer alone has nothing to overlap with, and one system call is cheaper than a ring's.
    if batch.len() > 1
        && let Some(mut ring) = rings.take()
    {
        ring.run(file, batch, counters);
        rings.put(ring);
    }
    // All that is still open: everything without a ring, nothing after one, unless it broke.
    positioned::run(file, batch, counters);
}
