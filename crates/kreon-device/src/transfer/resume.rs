//! What follows the completion of an entry of a ring.

use std::io;
use std::os::fd::BorrowedFd;

use kreon_base::{Error, Result};
use rustix::io::Errno;

use super::batch::{PieceProgress, TransferBatch};
use super::move_rest;
use super::slice::Slice;
use crate::device::{Read, Write};
use crate::system;
use crate::transfer_queue::{Transfer, Transferred};

/// What calls need that wait.
pub(super) struct Resumption<'a> {
    pub(super) file: BorrowedFd<'a>,
    pub(super) block_bytes: u32,
}

/// The end of a transfer whose entry completed with `result`: bytes, or an error below 0. What it left is moved by calls
/// that wait, which decide about repetitions as for any other transfer.
pub(super) fn conclude(
    tag: u64,
    mut transfer: Transfer,
    result: i32,
    rest: &Resumption<'_>,
) -> Transferred {
    let moved = usize::try_from(result).map_err(|_| Errno::from_raw_os_error(-result));
    let outcome = match &mut transfer {
        Transfer::Read { len_bytes, .. } | Transfer::Write { len_bytes, .. }
            if moved == Ok(*len_bytes) =>
        {
            Ok(())
        }
        Transfer::Read {
            offset,
            buffer,
            len_bytes,
        } => {
            let bytes = buffer.get_mut(..*len_bytes).unwrap_or_default();
            let mut reads = [Read::new(*offset, bytes)];
            let batch = TransferBatch::of_reads(&mut reads, rest.block_bytes, |_| Ok(()));
            rest.go_on(batch, moved)
        }
        Transfer::Write {
            offset,
            buffer,
            len_bytes,
        } => {
            let bytes = buffer.get(..*len_bytes).unwrap_or_default();
            let writes = [Write::new(*offset, bytes)];
            let batch = TransferBatch::of_writes(&writes, rest.block_bytes);
            rest.go_on(batch, moved)
        }
        Transfer::Flush => match moved {
            Ok(_) => Ok(()),
            // It never began, so this is not a repetition: no error is lost.
            Err(Errno::CANCELED) => rest.flush(),
            Err(error) => Err(flush_failed(error)),
        },
    };
    transfer.ended(tag, outcome)
}

impl Resumption<'_> {
    fn go_on<S: Slice>(
        &self,
        mut batch: TransferBatch<S>,
        moved: rustix::io::Result<usize>,
    ) -> Result<()> {
        let outcome = moved.map_err(|error| match error {
            // The thread that submitted it ended before it began.
            Errno::CANCELED | Errno::FAULT => io::ErrorKind::Interrupted.into(),
            error => io::Error::from(error),
        });
        if batch.progress(0, outcome) == PieceProgress::Again {
            move_rest(self.file, &mut batch, 0);
        }
        match batch.into_failures().pop() {
            None => Ok(()),
            Some((_, error)) => Err(error),
        }
    }

    fn flush(&self) -> Result<()> {
        system::flush(self.file).map_err(flush_failed)
    }
}

fn flush_failed(error: Errno) -> Error {
    Error::io("flush", error.into())
}
