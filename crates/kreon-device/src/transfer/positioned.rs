//! The engine without a ring: one `preadv` or `pwritev` after the other.

use std::os::fd::BorrowedFd;

use super::batch::{PieceProgress, TransferBatch};
use super::slice::Slice;
use crate::stats::DeviceCounters;

/// Executes the open pieces of `batch`.
pub(super) fn run<S: Slice>(
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
        while let Some((slices, offset, _)) = batch.rest_of(piece) {
            let outcome = S::transfer(file, slices, offset);
            if batch.progress(piece, outcome) == PieceProgress::Ended {
                break;
            }
        }
        counters.arrive(1);
    }
}
