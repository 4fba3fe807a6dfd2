//! Log that was received and is not written yet.
//!
//! Invariants:
//! - it is in the order of the log: each byte goes right behind the one before, or starts the next segment when that one
//!   was full. The log of a joiner may also go on later, from whole blocks to the border of a block: what is between came as
//!   pages before, or is no log any more;
//! - only whole blocks leave it, each once and in the order of the log, so a segment's header goes first and no block with
//!   acknowledged bytes is written again. The rest of a block leaves it at the seal, with zeroes behind.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use kreon_base::{Lsn, SEGMENT_BYTES};
use kreon_device::AlignedBuf;
use kreon_format::{LOG_HEADER_BYTES, lsn_at, place_of};
use kreon_wire::limits::BLOCK_BYTES;

use super::taken::overlap;
use super::work::Piece;

/// Consecutive bytes of one segment, from the border of a block on.
#[derive(Clone, Debug)]
struct Run {
    sequence: u64,
    offset: u64,
    bytes: Vec<u8>,
}

impl Run {
    fn range(&self) -> Range<u64> {
        self.offset..self.end()
    }

    fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }

    /// All before this is in the file when nothing but this run and those behind it is in memory.
    fn start(&self) -> Lsn {
        let within = (self.offset % SEGMENT_BYTES) as u32;
        lsn_at(self.sequence, within.max(LOG_HEADER_BYTES))
    }

    fn whole_bytes(&self) -> usize {
        self.bytes.len() - self.bytes.len() % BLOCK_BYTES as usize
    }
}

/// See the module's text.
#[derive(Clone, Debug)]
pub(super) struct LogTail {
    runs: VecDeque<Run>,
    /// All before this left, or never was to.
    written: Lsn,
}

impl LogTail {
    /// All before `written` is in the file.
    pub fn new(written: Lsn) -> Self {
        Self {
            runs: VecDeque::new(),
            written,
        }
    }

    /// Adds what follows, as [`LogCourse`](super::log_course::LogCourse) has checked.
    pub fn append(&mut self, lsn: Lsn, offset: u64, bytes: &[u8]) {
        let sequence = place_of(lsn).0;
        match self.runs.back_mut() {
            // The place of another segment may be that of one that was used again.
            Some(run) if run.sequence == sequence && run.end() == offset => {
                run.bytes.extend_from_slice(bytes)
            }
            _ => self.runs.push_back(Run {
                sequence,
                offset,
                bytes: bytes.to_vec(),
            }),
        }
        self.pass_gap();
    }

    /// What stands before the first byte in memory left, came as pages before it, was there before the stream, or is copied. A
    /// flush may name the border of a block at which log begins or goes on, before a whole block of it has come.
    fn pass_gap(&mut self) {
        if let Some(run) = self.runs.front() {
            self.written = self.written.max(run.start());
        }
    }

    /// All before this left, or never was to.
    pub fn written(&self) -> Lsn {
        self.written
    }

    /// Bytes in whole blocks.
    pub fn whole_bytes(&self) -> usize {
        self.runs.iter().map(Run::whole_bytes).sum()
    }

    /// All bytes.
    pub fn len_bytes(&self) -> usize {
        self.runs.iter().map(|run| run.bytes.len()).sum()
    }

    /// Whether some of it belongs into `range`.
    pub fn touches(&self, range: &Range<u64>) -> bool {
        self.runs.iter().any(|run| overlap(&run.range(), range))
    }

    /// Takes out the whole blocks; with `is_last` also the rest of a block, with zeroes behind. What left and how many bytes of
    /// log that is. No two pieces overlap: in the log of a slow joiner a segment may come again, and what comes later leaves later.
    pub fn take(&mut self, is_last: bool) -> (Vec<Piece>, u64) {
        let (mut pieces, mut taken) = (Vec::new(), 0);
        while let Some(run) = self.runs.front_mut() {
            let whole = match is_last {
                true => run.bytes.len(),
                false => run.whole_bytes(),
            };
            let padded = whole.next_multiple_of(BLOCK_BYTES as usize);
            let range = run.offset..run.offset + padded as u64;
            if pieces.iter().any(|p: &Piece| overlap(&p.range(), &range)) {
                break;
            }
            if whole > 0 {
                let mut block = AlignedBuf::new(padded);
                if let (Some(to), Some(from)) = (block.get_mut(..whole), run.bytes.get(..whole)) {
                    to.copy_from_slice(from);
                }
                pieces.push(Piece::whole(run.offset, Arc::new(block)));
                run.bytes.drain(..whole);
                run.offset += whole as u64;
                taken += whole as u64;
                self.written = position_of(run.sequence, run.offset);
            }
            if !run.bytes.is_empty() {
                break;
            }
            self.runs.pop_front();
        }
        self.pass_gap();
        (pieces, taken)
    }
}

/// The position at an offset behind some bytes of the segment with this sequence.
fn position_of(sequence: u64, offset: u64) -> Lsn {
    match offset % SEGMENT_BYTES {
        0 => lsn_at(sequence, SEGMENT_BYTES as u32),
        within => lsn_at(sequence, (within as u32).max(LOG_HEADER_BYTES)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u64 = 5 * SEGMENT_BYTES;

    #[test]
    fn whole_blocks_leave_once_and_the_rest_with_zeroes() {
        let start = lsn_at(7, LOG_HEADER_BYTES);
        let mut tail = LogTail::new(start);
        tail.append(start, SEGMENT, &[1; 5000]);
        let (pieces, taken) = tail.take(false);
        assert_eq!((pieces.len(), taken), (1, 4096));
        assert_eq!(pieces[0].range(), SEGMENT..SEGMENT + 4096);
        assert_eq!(tail.written(), start, "a header has no positions");
        tail.append(Lsn(start.0 + 904), SEGMENT + 5000, &[2; 8]);
        assert_eq!(tail.take(false).1, 0);
        let (pieces, taken) = tail.take(true);
        assert_eq!(taken, 912);
        let bytes = pieces[0].bytes();
        assert_eq!(bytes.len(), 4096);
        assert_eq!(
            (bytes[903], bytes[904], bytes[911], bytes[912]),
            (1, 2, 2, 0)
        );
        assert_eq!(tail.written(), Lsn(start.0 + 912));
    }

    #[test]
    fn a_log_that_begins_with_a_part_of_a_block_is_written_up_to_that_block() {
        let start = lsn_at(7, 8192);
        let mut tail = LogTail::new(Lsn(0));
        tail.append(start, SEGMENT + 8192, &[1; 100]);
        assert_eq!((tail.whole_bytes(), tail.written()), (0, start));
        // The header of a segment has no positions of its own.
        let start = lsn_at(7, LOG_HEADER_BYTES);
        let mut tail = LogTail::new(Lsn(0));
        tail.append(start, SEGMENT, &[1; 4096 + 100]);
        assert_eq!(tail.written(), start);
        tail.take(false);
        assert_eq!(tail.written(), start);
    }

    #[test]
    fn a_log_that_goes_on_elsewhere_is_written_up_to_there_when_all_before_has_left() {
        let mut tail = LogTail::new(Lsn(0));
        tail.append(lsn_at(7, 8192), SEGMENT + 8192, &[7; 8192]);
        let later = lsn_at(9, 12288);
        tail.append(later, 8 * SEGMENT_BYTES + 12288, &[9; 100]);
        assert_eq!(tail.written(), lsn_at(7, 8192));
        let (pieces, taken) = tail.take(false);
        assert_eq!((pieces.len(), taken, tail.written()), (1, 8192, later));
    }

    #[test]
    fn a_segment_that_was_used_again_leaves_twice_and_the_newer_bytes_last() {
        let mut tail = LogTail::new(Lsn(0));
        tail.append(lsn_at(7, 8192), SEGMENT + 8192, &[7; 8192]);
        // The same segment, right behind those bytes, and over them.
        tail.append(lsn_at(9, 16384), SEGMENT + 16384, &[9; 4096]);
        tail.append(lsn_at(11, 12288), SEGMENT + 12288, &[11; 4096 + 8]);
        let (pieces, taken) = tail.take(false);
        let ranges: Vec<_> = pieces.iter().map(Piece::range).collect();
        let at = |within: u64| SEGMENT + within;
        assert_eq!(
            (ranges, taken),
            (vec![at(8192)..at(16384), at(16384)..at(20480)], 8192 + 4096)
        );
        let start = lsn_at(11, 12288);
        assert_eq!((tail.whole_bytes(), tail.written()), (4096, start));
        let (pieces, taken) = tail.take(true);
        assert_eq!((pieces.len(), taken), (1, 4096 + 8));
        assert_eq!(pieces[0].bytes()[..4104], [11; 4104]);
        assert_eq!(tail.written(), Lsn(start.0 + 4104));
    }

    #[test]
    fn full_segments_leave_in_order_before_the_open_one() {
        let from = lsn_at(3, (SEGMENT_BYTES - 4096) as u32);
        let mut tail = LogTail::new(from);
        tail.append(from, SEGMENT + SEGMENT_BYTES - 4096, &[3; 4096]);
        let next = lsn_at(4, LOG_HEADER_BYTES);
        tail.append(next, 8 * SEGMENT_BYTES, &[4; 4104]);
        assert!(tail.touches(&(8 * SEGMENT_BYTES..8 * SEGMENT_BYTES + 1)));
        assert!(!tail.touches(&(SEGMENT..SEGMENT + 4096)));
        let (pieces, taken) = tail.take(false);
        assert_eq!((pieces.len(), taken), (2, 8192));
        assert_eq!((tail.written(), tail.len_bytes()), (next, 8));
    }
}
