//! One thing that a follower has to do to its file.

use std::ops::Range;
use std::sync::Arc;

use kreon_base::{Result, planted};
use kreon_device::{AlignedBuf, Device, Write};

/// Bytes for the file.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Where they go, in bytes.
    pub offset: u64,
    /// Where they stand in memory.
    pub(super) bytes: Arc<AlignedBuf>,
    /// Which of them.
    pub(super) part: Range<usize>,
}

impl Piece {
    /// All of `bytes`.
    pub(super) fn whole(offset: u64, bytes: Arc<AlignedBuf>) -> Self {
        let part = 0..bytes.len();
        Self {
            offset,
            bytes,
            part,
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
    /// Writes all of these, at depth: no two of them overlap.
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
                let writes: Vec<_> = pieces
                    .iter()
                    .map(|piece| Write::new(piece.offset, piece.bytes()))
                    .collect();
                device.write(&writes)
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
