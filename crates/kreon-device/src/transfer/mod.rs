//! Transfers between buffers and a file: batches, and two engines that execute them, with and without a ring; and
//! transfers in flight beside their thread.

mod batch;
#[cfg(all(target_os = "linux", not(feature = "portable")))]
mod queue;
#[cfg(all(target_os = "linux", not(feature = "portable")))]
mod resume;
#[cfg(not(all(target_os = "linux", not(feature = "portable"))))]
#[path = "no_ring.rs"]
mod ring;
#[cfg(all(target_os = "linux", not(feature = "portable")))]
mod ring;
mod ring_pool;
#[cfg(all(target_os = "linux", not(feature = "portable")))]
mod ring_transfers;
mod slice;
#[cfg(all(target_os = "linux", not(feature = "portable")))]
mod wake_event;

pub(crate) use batch::TransferBatch;
#[cfg(all(target_os = "linux", not(feature = "portable")))]
pub(crate) use queue::RingQueue;
#[cfg(not(all(target_os = "linux", not(feature = "portable"))))]
pub(crate) use ring::{RingQueue, RingTransfers};
pub(crate) use ring_pool::RingPool;
#[cfg(all(target_os = "linux", not(feature = "portable")))]
pub(crate) use ring_transfers::RingTransfers;
pub(crate) use slice::Slice;

use std::os::fd::BorrowedFd;

use crate::stats::DeviceCounters;
use batch::PieceProgress;

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
    run_open(file, batch, counters);
}

/// Executes the open pieces of `batch` without a ring: one `preadv` or `pwritev` after the other.
fn run_open<S: Slice>(
    file: BorrowedFd<'_>,
    batch: &mut TransferBatch<S>,
    counters: &DeviceCounters,
) {
    for piece in 0..batch.len() {
        if batch.is_given_up() {
            return;
        }
        let Some((_, _, len_bytes)) = batch.rest_of(piece) else {
            continue;
        };
        S::counters(counters).add(len_bytes);
        counters.depart(1);
        move_rest(file, batch, piece);
        counters.arrive(1);
    }
}

/// Moves what a piece has left by calls that wait.
fn move_rest<S: Slice>(file: BorrowedFd<'_>, batch: &mut TransferBatch<S>, piece: usize) {
    while let Some((slices, offset, _)) = batch.rest_of(piece) {
        let outcome = S::transfer(file, slices, offset);
        if batch.progress(piece, outcome) == PieceProgress::Ended {
            return;
        }
    }
}
