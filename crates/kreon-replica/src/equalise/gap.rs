//! The log that a member lacks, from the one that is to be primary.
//!
//! It goes as whole blocks: the first block that is not wholly known again, and the last one with zeroes behind the end, up
//! to the border where the next run begins. So the log that the tap sends later follows without a gap.

use kreon_base::{Lsn, Result, SEGMENT_BYTES, SegmentId};
use kreon_device::{AlignedBuf, Device};
use kreon_engine::Examined;
use kreon_format::{LOG_HEADER_BYTES, lsn_at, place_of};
use kreon_wire::limits::{BLOCK_BYTES, STREAM_DATA_BYTES_MAX};
use kreon_wire::{Member, StreamPacket};

use crate::mirror::Mirror;

/// Where the log stands that a member lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogGap {
    pieces: Vec<Piece>,
    end: Lsn,
}

/// Whole blocks of one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    segment: SegmentId,
    sequence: u64,
    start: u32,
    end: u32,
}

impl LogGap {
    /// What a member lacks whose log ends at `have`, of one that has what `examined` says. Both ends were computed under the
    /// same superblock.
    pub fn between(examined: &Examined, have: Lsn) -> Self {
        let end = examined.log_end;
        let mut pieces = Vec::new();
        for (segment, sequence) in &examined.log_segments {
            let (first, behind) = (
                lsn_at(*sequence, LOG_HEADER_BYTES),
                lsn_at(*sequence, SEGMENT),
            );
            if have >= end || behind <= have || first >= end {
                continue;
            }
            let block_bytes = BLOCK_BYTES as u32;
            let start = match have > first {
                true => place_of(have).1 - place_of(have).1 % block_bytes,
                false => 0,
            };
            let upto = match end < behind {
                true => place_of(end).1.next_multiple_of(block_bytes),
                false => SEGMENT,
            };
            pieces.push(Piece {
                segment: *segment,
                sequence: *sequence,
                start,
                end: upto,
            });
        }
        Self { pieces, end }
    }

    /// Whether nothing is missing.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Bytes of it.
    pub fn len_bytes(&self) -> u64 {
        let bytes = |piece: &Piece| u64::from(piece.end - piece.start);
        self.pieces.iter().map(bytes).sum()
    }
}

const SEGMENT: u32 = SEGMENT_BYTES as u32;

/// Sends a gap from `device` to one member, before the log of the term. It is durable there after the next
/// [barrier](Mirror::barrier).
///
/// # Errors
/// Those of the device; `Closed`.
pub fn ship_gap(mirror: &Mirror, member: Member, device: &dyn Device, gap: &LogGap) -> Result<()> {
    let mut buffer = AlignedBuf::new(STREAM_DATA_BYTES_MAX as usize);
    for piece in &gap.pieces {
        for start in (piece.start..piece.end).step_by(STREAM_DATA_BYTES_MAX as usize) {
            let len_bytes = (piece.end - start).min(STREAM_DATA_BYTES_MAX) as usize;
            let offset = piece.segment.offset_bytes() + u64::from(start);
            let Some(bytes) = buffer.get_mut(..len_bytes) else {
                continue;
            };
            device.read_at(offset, bytes)?;
            blank_behind(bytes, (piece.sequence, start), gap.end);
            let packet = StreamPacket::Log {
                lsn: lsn_at(piece.sequence, start.max(LOG_HEADER_BYTES)),
                offset,
                bytes,
            };
            mirror.ship_to(member, &packet)?;
        }
    }
    Ok(())
}

/// Zeroes what stands behind the end of the log in bytes from `start` of a segment on.
fn blank_behind(bytes: &mut [u8], (sequence, start): (u64, u32), end: Lsn) {
    let (last, within) = place_of(end);
    let from = match last == sequence {
        true => within.saturating_sub(start) as usize,
        false => bytes.len(),
    };
    if let Some(behind) = bytes.get_mut(from..) {
        behind.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use kreon_base::{Epoch, Incarnation, PageNo};
    use kreon_engine::Superblock;
    use kreon_format::{PagePointer, StoreId};

    use super::*;

    fn examined(log_end: Lsn) -> Examined {
        Examined {
            superblock: Superblock {
                store: StoreId(1),
                epoch: Epoch(4),
                incarnation: Incarnation(2),
                segments: 20,
                catalogue: PagePointer {
                    page: PageNo(0),
                    epoch: Epoch(4),
                    checksum: 0,
                },
                catalogue_bytes: 0,
            },
            damaged_slots: Vec::new(),
            log_end,
            log_segments: vec![(SegmentId(9), 5), (SegmentId(4), 6), (SegmentId(7), 7)],
        }
    }

    fn pieces(have: Lsn, end: Lsn) -> Vec<(u32, u32, u32)> {
        let gap = LogGap::between(&examined(end), have);
        let of = |piece: &Piece| (piece.segment.0, piece.start, piece.end);
        gap.pieces.iter().map(of).collect()
    }

    #[test]
    fn a_gap_is_whole_blocks_from_the_first_unknown_to_the_border_behind_the_end() {
        let (have, end) = (lsn_at(5, 9000), lsn_at(7, 5000));
        let expected = [(9, 8192, SEGMENT), (4, 0, SEGMENT), (7, 0, 8192)];
        assert_eq!(pieces(have, end), expected);
    }

    #[test]
    fn a_member_at_the_start_of_a_segment_gets_its_header() {
        let start = lsn_at(6, LOG_HEADER_BYTES);
        assert_eq!(pieces(start, lsn_at(6, 4104)), [(4, 0, 8192)]);
        assert_eq!(pieces(start, start), []);
        assert_eq!(pieces(lsn_at(6, 9000), lsn_at(6, 8000)), []);
    }

    #[test]
    fn an_end_at_the_border_of_a_segment_needs_nothing_of_the_next() {
        let end = lsn_at(7, LOG_HEADER_BYTES);
        assert_eq!(
            pieces(lsn_at(6, SEGMENT - 8), end),
            [(4, SEGMENT - 4096, SEGMENT)]
        );
    }

    #[test]
    fn what_stands_behind_the_end_is_not_sent() {
        let mut bytes = [1; 8192];
        blank_behind(&mut bytes, (6, 4096), lsn_at(6, 8200));
        assert!(bytes[..4104].iter().all(|byte| *byte == 1));
        assert!(bytes[4104..].iter().all(|byte| *byte == 0));
        let mut bytes = [1; 8];
        blank_behind(&mut bytes, (5, 4096), lsn_at(6, 4104));
        assert_eq!(bytes, [1; 8]);
    }
}
