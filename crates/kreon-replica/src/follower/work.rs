//! One thing that a follower has to do to its file.

use std::ops::Range;
use std::sync::Arc;

use kreon_base::{Result, planted};
use kreon_device::{AlignedBuf, Device, Write};
use kreon_wire::limits::BLOCK_BYTES;

/// Bytes for the file.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Where they go, in bytes.
    pub offset: u64,
    /// Where they stand in memory.
    pub(super) bytes: Arc<AlignedBuf>,
    /// Which of them.
    pub(super) part: Range<usize>,
    /// They were copied, and may be in the file already.
    pub(super) is_copy: bool,
}

impl Piece {
    /// All of `bytes`.
    pub(super) fn whole(offset: u64, bytes: Arc<AlignedBuf>) -> Self {
        let part = 0..bytes.len();
        Self {
            offset,
            bytes,
            part,
            is_copy: false,
        }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(self.part.clone()).unwrap_or_default()
    }

    /// The range of the file that they go to.
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.bytes().len() as u64
    }
}

/// One thing to be done to the file, to its end, before the next is asked for.
#[derive(Clone, Debug)]
pub enum Work {
    /// Writes all of these, at depth: no two of them overlap. Of a copy only the blocks that differ from the file's.
    Write(Vec<Piece>),
    /// Makes the file longer.
    Grow {
        /// The new length.
        len_bytes: u64,
    },
    /// Has the file system take blocks.
    Allocate {
        /// First byte.
        offset: u64,
        /// How many.
        len_bytes: u64,
        /// The primary does not wait: the follower keeps space for it.
        is_granted: bool,
    },
    /// Releases a range.
    Discard {
        /// First byte.
        offset: u64,
        /// How many.
        len_bytes: u64,
    },
    /// Makes durable what was done before.
    Flush,
}

impl Work {
    /// Does it. A granted allocation that fails has to be tried again with the space that was kept.
    ///
    /// # Errors
    /// Those of the device. The file is not to be trusted any more, but for an allocation that was not granted.
    pub fn perform(&self, device: &dyn Device) -> Result<()> {
        match self {
            Self::Write(pieces) => {
                let mut writes = Vec::new();
                for piece in pieces {
                    match piece.is_copy {
                        true => writes.extend(differing(piece, device)),
                        false => writes.push(Write::new(piece.offset, piece.bytes())),
                    }
                }
                match writes.is_empty() {
                    true => Ok(()),
                    false => device.write(&writes),
                }
            }
            Self::Grow { len_bytes } => device.grow(*len_bytes),
            Self::Allocate {
                offset, len_bytes, ..
            } => device.allocate(*offset, *len_bytes),
            Self::Discard { offset, len_bytes } => device.discard(*offset, *len_bytes),
            Self::Flush => {
                planted!(BackupFlushSkipped => return Ok(()));
                device.flush()
            }
        }
    }
}

/// The blocks of a copy that the file does not have, as runs. A file of an earlier copy has most of them: reading costs less
/// than writing, and wears nothing.
fn differing<'a>(piece: &'a Piece, device: &dyn Device) -> Vec<Write<'a>> {
    const BLOCK: usize = BLOCK_BYTES as usize;
    let bytes = piece.bytes();
    let mut there = AlignedBuf::new(bytes.len());
    if device.read_at(piece.offset, &mut there).is_err() {
        // What cannot be read is replaced.
        return vec![Write::new(piece.offset, bytes)];
    }
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (index, (new, old)) in bytes.chunks(BLOCK).zip(there.chunks(BLOCK)).enumerate() {
        let (start, end) = (index * BLOCK, index * BLOCK + new.len());
        match runs.last_mut() {
            _ if new == old => {}
            Some(last) if last.end == start => last.end = end,
            _ => runs.push(start..end),
        }
    }
    let write = |run: Range<usize>| {
        let offset = piece.offset + run.start as u64;
        Some(Write::new(offset, bytes.get(run)?))
    };
    runs.into_iter().filter_map(write).collect()
}

#[cfg(test)]
mod tests {
    use kreon_sim::{SimDevice, SimOptions};

    use super::*;

    #[test]
    fn blocks_of_a_copy_that_are_there_are_not_written() {
        let device = SimDevice::new(SimOptions::default());
        device.grow(1 << 20).unwrap();
        let mut copy = AlignedBuf::new(4 * 4096);
        copy.fill(7);
        device.write_at(8192, copy.get(..8192).unwrap()).unwrap();
        let before = device.stats().writes.bytes;
        let piece = Piece {
            is_copy: true,
            ..Piece::whole(8192, Arc::new(copy))
        };
        Work::Write(vec![piece.clone()]).perform(&device).unwrap();
        assert_eq!(device.stats().writes.bytes - before, 8192);
        assert_eq!(device.image().bytes(8192, 4 * 4096), [7; 4 * 4096]);
        // The same again: nothing is left to be written.
        Work::Write(vec![piece.clone()]).perform(&device).unwrap();
        assert_eq!(device.stats().writes.bytes - before, 8192);
        let page = Piece {
            is_copy: false,
            ..piece
        };
        Work::Write(vec![page]).perform(&device).unwrap();
        assert_eq!(device.stats().writes.bytes - before, 8192 + 4 * 4096);
    }
}
