//! The transfers of one call and their progress.

use std::io::{self, IoSlice, IoSliceMut};
use std::ops::Range;

use kreon_base::{Error, Result};

use super::slice::Slice;
use crate::device::{Read, Write};

/// Most buffers in one system call (`IOV_MAX`).
const SLICES_MAX: usize = 1024;

/// Most consecutive attempts of a transfer without progress ("interrupted", "try again") before it fails.
const STALLS_MAX: u32 = 10_000;

/// The transfers of one call. A request is one piece, or several if it has more than [`SLICES_MAX`] buffers.
pub(crate) struct TransferBatch<S> {
    /// The buffers of all pieces, in the order of the pieces.
    slices: Vec<S>,
    pieces: Vec<Piece>,
    /// Index of the request and its error, in the order of occurrence.
    failures: Vec<(usize, Error)>,
    block_bytes: usize,
}

/// Consecutive bytes of the file, usually moved by one system call.
struct Piece {
    request: usize,
    /// Offset of the next byte to move.
    offset: u64,
    /// Buffers left.
    slices: Range<usize>,
    /// Bytes left; 0 after a failure as well.
    left_bytes: u64,
    stalls: u32,
}

/// What follows a system call on a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieceProgress {
    /// The piece has ended, with or without an error.
    Ended,
    /// The rest needs another call.
    Again,
}

impl<'a> TransferBatch<IoSliceMut<'a>> {
    /// The reads that `accept` allows; a request is numbered by its index in `reads`.
    pub(crate) fn of_reads(
        reads: &'a mut [Read<'_>],
        block_bytes: u32,
        mut accept: impl FnMut(&Read<'_>) -> Result<()>,
    ) -> Self {
        let mut batch = Self::new(reads.len(), block_bytes);
        for (request, read) in reads.iter_mut().enumerate() {
            match accept(read) {
                Ok(()) => {
                    let slices = read.buffers.iter_mut().map(|b| IoSliceMut::new(b));
                    batch.add(request, read.offset, slices);
                }
                Err(error) => batch.failures.push((request, error)),
            }
        }
        batch
    }
}

impl<'a> TransferBatch<IoSlice<'a>> {
    pub(crate) fn of_writes(writes: &'a [Write<'_>], block_bytes: u32) -> Self {
        let mut batch = Self::new(writes.len(), block_bytes);
        for (request, write) in writes.iter().enumerate() {
            let slices = write.buffers.iter().map(|b| IoSlice::new(b));
            batch.add(request, write.offset, slices);
        }
        batch
    }
}

impl<S: Slice> TransferBatch<S> {
    fn new(requests: usize, block_bytes: u32) -> Self {
        Self {
            slices: Vec::with_capacity(requests),
            pieces: Vec::with_capacity(requests),
            failures: Vec::new(),
            block_bytes: block_bytes as usize,
        }
    }

    fn add(&mut self, request: usize, mut offset: u64, slices: impl Iterator<Item = S>) {
        let mut slices = slices.filter(|slice| slice.len_bytes() != 0).peekable();
        while slices.peek().is_some() {
            let first = self.slices.len();
            let mut left_bytes = 0;
            for slice in slices.by_ref().take(SLICES_MAX) {
                left_bytes += slice.len_bytes() as u64;
                self.slices.push(slice);
            }
            self.pieces.push(Piece {
                request,
                offset,
                slices: first..self.slices.len(),
                left_bytes,
                stalls: 0,
            });
            offset += left_bytes;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// The failed requests with their errors, in the order of the requests.
    pub(crate) fn into_failures(mut self) -> Vec<(usize, Error)> {
        self.failures.sort_by_key(|(request, _)| *request);
        self.failures
    }

    /// Whether pieces that were not begun are to be skipped.
    pub(super) fn is_given_up(&self) -> bool {
        !S::GO_ON_AFTER_FAILURE && !self.failures.is_empty()
    }

    /// Buffers, offset and bytes that a piece has left; `None` if it has ended.
    pub(super) fn rest_of(&mut self, piece: usize) -> Option<(&mut [S], u64, u64)> {
        let piece = self.pieces.get(piece).filter(|p| p.left_bytes != 0)?;
        let slices = self.slices.get_mut(piece.slices.clone())?;
        Some((slices, piece.offset, piece.left_bytes))
    }

    /// Records the outcome of a system call on a piece.
    pub(super) fn progress(&mut self, piece: usize, outcome: io::Result<usize>) -> PieceProgress {
        let Some(state) = self.pieces.get_mut(piece) else {
            return PieceProgress::Ended;
        };
        let moved = match outcome {
            Ok(moved) if moved as u64 >= state.left_bytes => {
                state.left_bytes = 0;
                return PieceProgress::Ended;
            }
            // Direct I/O must continue at a block boundary; a partly moved block is moved again.
            Ok(moved) => moved - moved % self.block_bytes,
            Err(error) => match error.kind() {
                io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
                    if state.stalls < STALLS_MAX =>
                {
                    state.stalls += 1;
                    return PieceProgress::Again;
                }
                _ => return self.fail(piece, error),
            },
        };
        if moved == 0 {
            return self.fail(piece, io::ErrorKind::UnexpectedEof.into());
        }
        state.stalls = 0;
        state.offset += moved as u64;
        state.left_bytes -= moved as u64;
        if let Some(mut slices) = self.slices.get_mut(state.slices.clone()) {
            S::advance(&mut slices, moved);
            state.slices.start = state.slices.end - slices.len();
        }
        PieceProgress::Again
    }

    fn fail(&mut self, piece: usize, error: io::Error) -> PieceProgress {
        if let Some(state) = self.pieces.get_mut(piece) {
            let action = format!("{} {} bytes at {}", S::VERB, state.left_bytes, state.offset);
            let error = match error.kind() {
                io::ErrorKind::UnexpectedEof => {
                    Error::io(action + ": the device moved no more bytes", error)
                }
                _ => Error::io(action, error),
            };
            self.failures.push((state.request, error));
            state.left_bytes = 0;
        }
        PieceProgress::Ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kreon_base::ErrorKind;

    const PAGE: usize = 4096;

    fn rest<S: Slice>(
        batch: &mut TransferBatch<S>,
        piece: usize,
    ) -> Option<(Vec<usize>, u64, u64)> {
        let (slices, offset, left_bytes) = batch.rest_of(piece)?;
        let lengths = slices.iter().map(Slice::len_bytes).collect();
        Some((lengths, offset, left_bytes))
    }

    fn interrupted() -> io::Result<usize> {
        Err(io::ErrorKind::Interrupted.into())
    }

    #[test]
    fn a_short_transfer_goes_on_at_the_last_whole_block() {
        let page = [0; PAGE];
        let writes = [Write::vectored(8192, vec![&page, &page, &page])];
        let mut batch = TransferBatch::of_writes(&writes, 512);
        assert_eq!(rest(&mut batch, 0), Some((vec![PAGE; 3], 8192, 12288)));
        // One buffer and a half, and a part of a block that is moved again.
        assert_eq!(batch.progress(0, Ok(6144 + 100)), PieceProgress::Again);
        assert_eq!(rest(&mut batch, 0), Some((vec![2048, PAGE], 14336, 6144)));
        assert_eq!(batch.progress(0, Ok(2048)), PieceProgress::Again);
        assert_eq!(rest(&mut batch, 0), Some((vec![PAGE], 16384, 4096)));
        assert_eq!(batch.progress(0, Ok(4096)), PieceProgress::Ended);
        assert_eq!(rest(&mut batch, 0), None);
        assert!(batch.into_failures().is_empty());
    }

    #[test]
    fn a_transfer_that_moves_nothing_fails() {
        for moved in [0, 511] {
            let page = [0; PAGE];
            let writes = [Write::new(0, &page)];
            let mut batch = TransferBatch::of_writes(&writes, 512);
            assert_eq!(batch.progress(0, Ok(moved)), PieceProgress::Ended);
            assert!(batch.is_given_up());
            let failures = batch.into_failures();
            assert_eq!(failures[0].1.kind(), ErrorKind::Io);
        }
    }

    #[test]
    fn interruptions_are_repeated_but_not_forever() {
        let page = [0; PAGE];
        let writes = [Write::new(0, &page)];
        let mut batch = TransferBatch::of_writes(&writes, 512);
        let again = || Err(io::ErrorKind::WouldBlock.into());
        for _ in 0..STALLS_MAX {
            assert_eq!(batch.progress(0, interrupted()), PieceProgress::Again);
        }
        assert_eq!(
            batch.progress(0, Ok(512)),
            PieceProgress::Again,
            "progress resets"
        );
        for _ in 0..STALLS_MAX {
            assert_eq!(batch.progress(0, again()), PieceProgress::Again);
        }
        assert_eq!(batch.progress(0, again()), PieceProgress::Ended);
        assert_eq!(batch.into_failures().len(), 1);
    }

    #[test]
    fn reads_go_on_after_a_failure_and_failures_come_in_order() {
        let mut pages = [[0; PAGE]; 3];
        let mut reads: Vec<_> = pages.iter_mut().map(|page| Read::new(0, page)).collect();
        let mut batch = TransferBatch::of_reads(&mut reads, 512, |_| Ok(()));
        let broken = || Err(io::Error::from_raw_os_error(5));
        assert_eq!(batch.progress(2, broken()), PieceProgress::Ended);
        assert!(!batch.is_given_up());
        assert_eq!(batch.progress(0, broken()), PieceProgress::Ended);
        let failed: Vec<_> = batch.into_failures().iter().map(|f| f.0).collect();
        assert_eq!(failed, [0, 2]);
    }

    #[test]
    fn a_request_of_very_many_buffers_is_several_pieces() {
        let page = [0; 512];
        let writes = [
            Write::vectored(0, vec![&page; 2 * SLICES_MAX + 1]),
            Write::vectored(4 << 20, vec![&page; SLICES_MAX]),
        ];
        let mut batch = TransferBatch::of_writes(&writes, 512);
        assert_eq!(batch.len(), 4);
        let (lengths, offset, left_bytes) = rest(&mut batch, 2).unwrap();
        assert_eq!((lengths.len(), offset, left_bytes), (1, 1 << 20, 512));
        assert_eq!(rest(&mut batch, 3).unwrap().1, 4 << 20);
    }
}
