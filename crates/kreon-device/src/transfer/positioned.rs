//! The engine without a ring: one `preadv` or `pwritev` after the other.

use std::os::fd::BorrowedFd;

use super::batch::{Batch, Progress};
use super::slice::Slice;
use crate::stats::Counters;

/// Carries out what is open in `batch`.
pub(super) fn run<S: Slice>(file: BorrowedFd<'_>, batch: &mut Batch<S>, counters: &Counters) {
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
            if batch.progress(piece, outcome) == Progress::Ended {
                break;
            }
        }
        counters.arrive(1);
    }
}
