//! The two directions of a transfer, as the kinds of buffer they move.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd};

use io_uring::{opcode, squeue, types};

use crate::stats::{Counters, TransferCounters};

/// A buffer that is read into (`IoSliceMut`) or written from (`IoSlice`). Both have the layout of the
/// operating system's `iovec`; the standard library guarantees it.
pub(crate) trait Slice: Sized {
    /// For messages.
    const VERB: &'static str;

    /// Whether to go on with the others after one transfer failed.
    const GO_ON_AFTER_FAILURE: bool;

    /// Length of the buffer.
    fn len_bytes(&self) -> usize;

    /// Drops the first `len_bytes` of `slices`, which hold at least so many.
    fn advance(slices: &mut &mut [Self], len_bytes: usize);

    /// One system call; may move less than asked for.
    fn transfer(file: BorrowedFd<'_>, slices: &mut [Self], offset: u64) -> io::Result<usize>;

    /// The same as an entry of a ring, for a non-empty `slices` of at most 1024.
    fn entry(file: BorrowedFd<'_>, slices: &mut [Self], offset: u64) -> squeue::Entry;

    /// Where such transfers are counted.
    fn counters(counters: &Counters) -> &TransferCounters;
}

impl Slice for IoSliceMut<'_> {
    const VERB: &'static str = "read";
    const GO_ON_AFTER_FAILURE: bool = true;

    fn len_bytes(&self) -> usize {
        self.len()
    }

    fn advance(slices: &mut &mut [Self], len_bytes: usize) {
        IoSliceMut::advance_slices(slices, len_bytes);
    }

    fn transfer(file: BorrowedFd<'_>, slices: &mut [Self], offset: u64) -> io::Result<usize> {
        Ok(rustix::io::preadv(file, slices, offset)?)
    }

    fn entry(file: BorrowedFd<'_>, slices: &mut [Self], offset: u64) -> squeue::Entry {
        let file = types::Fd(file.as_raw_fd());
        match slices {
            // Longer than `u32`: only the vectored form can say it.
            [only] if u32::try_from(only.len()).is_ok() => {
                opcode::Read::new(file, only.as_mut_ptr(), only.len() as u32)
                    .offset(offset)
                    .build()
            }
            _ => opcode::Readv::new(file, slices.as_ptr().cast(), slices.len() as u32)
                .offset(offset)
                .build(),
        }
    }

    fn counters(counters: &Counters) -> &TransferCounters {
        &counters.reads
    }
}

impl Slice for IoSlice<'_> {
    const VERB: &'static str = "write";
    const GO_ON_AFTER_FAILURE: bool = false;

    fn len_bytes(&self) -> usize {
        self.len()
    }

    fn advance(slices: &mut &mut [Self], len_bytes: usize) {
        IoSlice::advance_slices(slices, len_bytes);
    }

    fn transfer(file: BorrowedFd<'_>, slices: &mut [Self], offset: u64) -> io::Result<usize> {
        Ok(rustix::io::pwritev(file, slices, offset)?)
    }

    fn entry(file: BorrowedFd<'_>, slices: &mut [Self], offset: u64) -> squeue::Entry {
        let file = types::Fd(file.as_raw_fd());
        match slices {
            [only] if u32::try_from(only.len()).is_ok() => {
                opcode::Write::new(file, only.as_ptr(), only.len() as u32)
                    .offset(offset)
                    .build()
            }
            _ => opcode::Writev::new(file, slices.as_ptr().cast(), slices.len() as u32)
                .offset(offset)
                .build(),
        }
    }

    fn counters(counters: &Counters) -> &TransferCounters {
        &counters.writes
    }
}
