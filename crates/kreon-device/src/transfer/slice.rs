//! The directions of a transfer, as types of buffers.

use std::io::{self, IoSlice, IoSliceMut};
#[cfg(all(target_os = "linux", not(feature = "portable")))]
use std::os::fd::AsRawFd;
use std::os::fd::BorrowedFd;

#[cfg(all(target_os = "linux", not(feature = "portable")))]
use io_uring::{opcode, squeue, types};

use crate::stats::{DeviceCounters, TransferCounters};

/// A buffer to read into (`IoSliceMut`) or to write from (`IoSlice`). The standard library guarantees that both have
/// the layout of the operating system's `iovec`.
pub(crate) trait Slice: Sized {
    /// Name of the direction in messages.
    const VERB: &'static str;

    /// Whether the other transfers of a batch go on after one has failed.
    const GO_ON_AFTER_FAILURE: bool;

    /// Length of the buffer.
    fn len_bytes(&self) -> usize;

    /// Drops the first `len_bytes` of `slices`, which hold at least that many.
    fn advance(slices: &mut &mut [Self], len_bytes: usize);

    /// One system call; it may move less than requested.
    fn transfer(file: BorrowedFd<'_>, slices: &mut [Self], offset: u64) -> io::Result<usize>;

    /// The same transfer as an entry of a ring, for 1 to 1024 `slices`.
    #[cfg(all(target_os = "linux", not(feature = "portable")))]
    fn entry(file: BorrowedFd<'_>, slices: &mut [Self], offset: u64) -> squeue::Entry;

    /// The counters of this direction.
    fn counters(counters: &DeviceCounters) -> &TransferCounters;
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

    #[cfg(all(target_os = "linux", not(feature = "portable")))]
    fn entry(file: BorrowedFd<'_>, slices: &mut [Self], offset: u64) -> squeue::Entry {
        let file = types::Fd(file.as_raw_fd());
        match slices {
            // Only the vectored form takes a length above `u32::MAX`.
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

    fn counters(counters: &DeviceCounters) -> &TransferCounters {
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

    #[cfg(all(target_os = "linux", not(feature = "portable")))]
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

    fn counters(counters: &DeviceCounters) -> &TransferCounters {
        &counters.writes
    }
}
