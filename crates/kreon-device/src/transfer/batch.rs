//! The transfers of one call and how far each has come.

use std::io::{self, IoSlice, IoSliceMut};
use std::ops::Range;

use kreon_base::{Error, Result};

use super::slice::Slice;
use crate::device::{Read, Write};

/// Most buffers in one system call (`IOV_MAX`).
const SLICES_MAX: usize = 1024;

/// How often in a row a transfer may end without progress ("interrupted", "try again") before that
/// is an error.
const STALLS_MAX: u32 = 10_000;

/// The transfers of one call: each request is one piece, or several if it has very many buffers.
pub(crate) struct Batch<S> {
    /// The buffers of all pieces, one piece after the other.
    slices: Vec<S>,
    pieces: Vec<Piece>,
    /// Index of the request and what went wrong, as it happened.
    failures: Vec<(usize, Error)>,
    block_bytes: usize,
}

/// Consecutive bytes of the file, moved by one system call if all goes well.
struct Piece {
    request: usize,
    /// Where to go on.
    offset: u64,
    /// What is left of its buffers.
    slices: Range<usize>,
    /// Bytes left to move; 0 also after a failure.
    left_bytes: u64,
    stalls: u32,
}

/// What to do with a piece after a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// It has ended, well or not.
    Ended,
    /// Call again for the rest.
    Again,
}

impl<'a> Batch<IoSliceMut<'a>> {
    /// The reads that `accept` lets pass; the request's number is its place in `reads`.
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

impl<'a> Batch<IoSlice<'a>> {
    /// All of `writes`.
    pub(crate) fn of_writes(writes: &'a [Write<'_>], block_bytes: u32) -> Self {
        let mut batch = Self::new(writes.len(), block_bytes);
        for (request, write) in writes.iter().enumerate() {
            let slices = write.buffers.iter().map(|b| IoSlice::new(b));
            batch.add(request, write.offset, slices);
        }
        batch
    }
}

impl<S: Slice> Batch<S> {
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

    /// Number of pieces.
    pub(crate) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Ends the batch: which requests failed and how, in the order of the requests.
    pub(crate) fn into_failures(mut self) -> Vec<(usize, Error)> {
        self.failures.sort_by_key(|(request, _)| *request);
        self.failures
    }

    /// Whether pieces that were not begun should be left alone.
    pub(super) fn is_given_up(&self) -> bool {
        !S::GO_ON_AFTER_FAILURE && !self.failures.is_empty()
    }

    /// What a piece has left to move: buffers, offset, bytes. `None` if it has ended.
    pub(super) fn rest_of(&mut self, piece: usize) -> Option<(&mut [S], u64, u64)> {
        let piece = self.pieces.get(piece).filter(|p| p.left_bytes != 0)?;
        let slices = self.slices.get_mut(piece.slices.clone())?;
        Some((slices, piece.offset, piece.left_bytes))
    }

    /// Takes note of the outcome of a system call on a piece.
    pub(super) fn progress(&mut self, piece: usize, outcome: io::Result<usize>) -> Progress {
        let Some(state) = self.pieces.get_mut(piece) else {
            return Progress::Ended;
        };
        let moved = match outcome {
            Ok(moved) if moved as u64 >= state.left_bytes => {
                state.left_bytes = 0;
                return Progress::Ended;
            }
            // Direct I/O goes on at a block boundary only; the broken block is moved again.
            Ok(moved) => moved - moved % self.block_bytes,
            Err(error) => match error.kind() {
                io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
                    if state.stalls < STALLS_MAX =>
                {
                    state.stalls += 1;
                    return Progress::Again;
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
        Progress::Again
    }

    fn fail(&mut self, piece: usize, error: io::Error) -> Progress {
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
        Progress::Ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kreon_base::ErrorKind;

    const PAGE: usize = 4096;

    fn rest<S: Slice>(batch: &mut Batch<S>, piece: usize) -> Option<(Vec<usize>, u64, u64)> {
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
        let mut batch = Batch::of_writes(&writes, 512);
        assert_eq!(rest(&mut batch, 0), Some((vec![PAGE; 3], 8192, 12288)));
        // One buffer and a half, and a part of a block that is moved again.
        assert_eq!(batch.progress(0, Ok(6144 + 100)), Progress::Again);
        assert_eq!(rest(&mut batch, 0), Some((vec![2048, PAGE], 14336, 6144)));
        assert_eq!(batch.progress(0, Ok(2048)), Progress::Again);
        assert_eq!(rest(&mut batch, 0), Some((vec![PAGE], 16384, 4096)));
        assert_eq!(batch.progress(0, Ok(4096)), Progress::Ended);
        assert_eq!(rest(&mut batch, 0), None);
        assert!(batch.into_failures().is_empty());
    }

    #[test]
    fn a_transfer_that_moves_nothing_fails() {
        for moved in [0, 511] {
            let page = [0; PAGE];
            let writes = [Write::new(0, &page)];
            let mut batch = Batch::of_writes(&writes, 512);
            assert_eq!(batch.progress(0, Ok(moved)), Progress::Ended);
            assert!(batch.is_given_up());
            let failures = batch.into_failures();
            assert_eq!(failures[0].1.kind(), ErrorKind::Io);
        }
    }

    #[test]
    fn interruptions_are_repeated_but_not_forever() {
        let page = [0; PAGE];
        let writes = [Write::new(0, &page)];
        let mut batch = Batch::of_writes(&writes, 512);
        let again = || Err(io::ErrorKind::WouldBlock.into());
        for _ in 0..STALLS_MAX {
            assert_eq!(batch.progress(0, interrupted()), Progress::Again);
        }
        assert_eq!(
            batch.progress(0, Ok(512)),
            Progress::Again,
            "progress resets"
        );
        for _ in 0..STALLS_MAX {
            assert_eq!(batch.progress(0, again()), Progress::Again);
        }
        assert_eq!(batch.progress(0, again()), Progress::Ended);
        assert_eq!(batch.into_failures().len(), 1);
    }

    #[test]
    fn reads_go_on_after_a_failure_and_failures_come_in_order() {
        let mut pages = [[0; PAGE]; 3];
        let mut reads: Vec<_> = pages.iter_mut().map(|page| Read::new(0, page)).collect();
        let mut batch = Batch::of_reads(&mut reads, 512, |_| Ok(()));
        let broken = || Err(io::Error::from_raw_os_error(5));
        assert_eq!(batch.progress(2, broken()), Progress::Ended);
        assert!(!batch.is_given_up());
        assert_eq!(batch.progress(0, broken()), Progress::Ended);
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
        let mut batch = Batch::of_writes(&writes, 512);
        assert_eq!(batch.len(), 4);
        let (lengths, offset, left_bytes) = rest(&mut batch, 2).unwrap();
        assert_eq!((lengths.len(), offset, left_bytes), (1, 1 << 20, 512));
        assert_eq!(rest(&mut batch, 3).unwrap().1, 4 << 20);
    }
}
