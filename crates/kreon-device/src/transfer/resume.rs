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

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    use kreon_base::ErrorKind;

    use super::*;
    use crate::aligned_buf::AlignedBuf;

    const PAGE: usize = 4096;

    fn write() -> Transfer {
        let mut buffer = AlignedBuf::new(PAGE);
        buffer.fill(7);
        Transfer::Write {
            offset: 0,
            buffer,
            len_bytes: PAGE,
        }
    }

    /// Concludes `transfer` of a new file with `result`; the outcome and what the file holds.
    fn conclude_in_file(name: &str, transfer: Transfer, result: i32) -> (Result<()>, Vec<u8>) {
        let path = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(true);
        let file = file.open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let rest = Resumption {
            file: file.as_fd(),
            block_bytes: 512,
        };
        let ended = conclude(3, transfer, result, &rest);
        assert_eq!(ended.tag, 3);
        let mut found = vec![0; file.metadata().unwrap().len() as usize];
        file.read_exact_at(&mut found, 0).unwrap();
        (ended.outcome, found)
    }

    #[test]
    fn what_was_cancelled_before_it_began_is_carried_out() {
        for error in [Errno::CANCELED, Errno::FAULT, Errno::INTR, Errno::AGAIN] {
            let (outcome, found) = conclude_in_file("cancelled", write(), -error.raw_os_error());
            outcome.unwrap();
            assert_eq!(found, [7; PAGE]);
        }
        let cancelled = -Errno::CANCELED.raw_os_error();
        let (outcome, _) = conclude_in_file("cancelled", Transfer::Flush, cancelled);
        outcome.unwrap();
    }

    #[test]
    fn a_short_write_goes_on_where_it_ended() {
        let (outcome, found) = conclude_in_file("short", write(), 1024 + 100);
        outcome.unwrap();
        assert_eq!(found[..1024], [0; 1024], "not written twice");
        assert_eq!(found[1024..], [7; PAGE - 1024]);
    }

    #[test]
    fn failed_writes_and_flushes_are_not_repeated() {
        let failed = -Errno::IO.raw_os_error();
        for (transfer, text) in [
            (write(), "write 4096 bytes at 0"),
            (Transfer::Flush, "flush"),
        ] {
            let (outcome, found) = conclude_in_file("failed", transfer, failed);
            let error = outcome.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Io);
            assert!(error.to_string().contains(text), "{error}");
            assert!(found.is_empty());
        }
        let interrupted = -Errno::INTR.raw_os_error();
        let (outcome, _) = conclude_in_file("failed", Transfer::Flush, interrupted);
        assert!(outcome.is_err(), "a flush that began");
    }
}
