//! A packet that was received and waits for its turn.

use std::ops::Range;
use std::sync::Arc;

use kreon_base::Lsn;
use kreon_device::AlignedBuf;
use kreon_wire::{FlushNumber, StreamNumber, StreamPacket};

use super::touched::Touched;
use super::work::Piece;

/// A packet in memory, with its number. Copying it shares its bytes.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    pub number: StreamNumber,
    pub what: What,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    Log {
        lsn: Lsn,
        offset: u64,
        bytes: Arc<[u8]>,
    },
    /// In memory that a device writes from.
    Pages {
        offset: u64,
        bytes: Arc<AlignedBuf>,
    },
    /// The parts of a copy that nothing was sent for before, and the length of all of it.
    Copy {
        pieces: Vec<Piece>,
        len_bytes: u64,
    },
    Grow {
        len_bytes: u64,
    },
    Allocate {
        offset: u64,
        len_bytes: u64,
        /// Nobody waits for the answer.
        is_granted: bool,
    },
    Discard {
        offset: u64,
        len_bytes: u64,
    },
    Flush {
        number: FlushNumber,
        log_upto: Lsn,
    },
    Complete,
}

impl What {
    /// A copy of `packet`; of a joiner without what was `touched`.
    pub fn of(packet: &StreamPacket<'_>, is_granted: bool, touched: Option<&Touched>) -> Self {
        match *packet {
            StreamPacket::Log { lsn, offset, bytes } => Self::Log {
                lsn,
                offset,
                bytes: bytes.into(),
            },
            StreamPacket::Pages { offset, bytes } => Self::Pages {
                offset,
                bytes: aligned(bytes),
            },
            StreamPacket::Copy { offset, bytes } => Self::Copy {
                pieces: copied(offset, bytes, touched),
                len_bytes: bytes.len() as u64,
            },
            StreamPacket::Grow { len_bytes } => Self::Grow { len_bytes },
            StreamPacket::Allocate { offset, len_bytes } => Self::Allocate {
                offset,
                len_bytes,
                is_granted,
            },
            StreamPacket::Discard { offset, len_bytes } => Self::Discard { offset, len_bytes },
            StreamPacket::Flush { number, log_upto } => Self::Flush { number, log_upto },
            StreamPacket::Complete => Self::Complete,
        }
    }

    /// The bytes of the volume that it changes; none for a range that only gets space, and for log, which has its own order.
    pub fn changes(&self) -> Vec<Range<u64>> {
        match self {
            Self::Discard { offset, len_bytes } => {
                let discarded = *offset..offset.saturating_add(*len_bytes);
                [discarded].into()
            }
            _ => {
                let pieces = self.pieces().map(|(pieces, _)| pieces);
                pieces.iter().flatten().map(Piece::range).collect()
            }
        }
    }

    /// What is to be written, and the length of the packet's data; `None` for other kinds.
    pub fn pieces(&self) -> Option<(Vec<Piece>, u64)> {
        match self {
            Self::Pages { offset, bytes } => {
                let piece = Piece::whole(*offset, Arc::clone(bytes));
                Some((vec![piece], bytes.len() as u64))
            }
            Self::Copy { pieces, len_bytes } => Some((pieces.clone(), *len_bytes)),
            _ => None,
        }
    }
}

/// The parts of copied blocks that nothing was sent for before.
fn copied(offset: u64, bytes: &[u8], touched: Option<&Touched>) -> Vec<Piece> {
    let range = offset..offset + bytes.len() as u64;
    let bytes = aligned(bytes);
    let parts = match touched {
        Some(touched) => touched.free_parts(&range),
        None => Vec::new(),
    };
    let piece = |part: Range<u64>| Piece {
        offset: part.start,
        bytes: Arc::clone(&bytes),
        part: (part.start - offset) as usize..(part.end - offset) as usize,
        is_copy: true,
    };
    parts.into_iter().map(piece).collect()
}

fn aligned(bytes: &[u8]) -> Arc<AlignedBuf> {
    let mut copy = AlignedBuf::new(bytes.len());
    copy.copy_from_slice(bytes);
    Arc::new(copy)
}

/// Whether two ranges have a byte in common.
pub(super) fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}
