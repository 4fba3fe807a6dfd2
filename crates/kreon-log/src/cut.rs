//! Where the bytes of a record are: records are cut into fragments at the ends of segments.
//!
//! Invariant: appending, reading and accounting all use this one rule, so the place and the two lengths of a record say
//! where all of it is.

use kreon_base::SEGMENT_BYTES;
use kreon_format::{FRAGMENT_HEADER_BYTES, LOG_HEADER_BYTES, RECORD_ALIGN_BYTES, fragment_bytes};

/// Bytes of a segment.
pub const SEGMENT: u32 = SEGMENT_BYTES as u32;

/// Units up to this length stand whole in one segment, so that most reads find a record in one piece.
/// Longer ones go on in the next segment: padding for them would waste space.
pub const WHOLE_UNIT_BYTES_MAX: usize = 64 << 10;

/// Where records start in a segment.
pub(super) const PAYLOAD_START: u32 = LOG_HEADER_BYTES;

/// Shortest rest of a segment that takes a fragment which does not end its record.
const SPLIT_REST_BYTES_MIN: usize = FRAGMENT_HEADER_BYTES + RECORD_ALIGN_BYTES;

/// How many of the `left_bytes` of a record that are still to be placed go into a segment with
/// `rest_bytes` left. `None`: no fragment, the rest is padded and the record goes on in the next
/// segment.
pub(super) fn cut(left_bytes: usize, rest_bytes: usize) -> Option<usize> {
    if fragment_bytes(left_bytes) <= rest_bytes {
        Some(left_bytes)
    } else if rest_bytes >= SPLIT_REST_BYTES_MIN {
        Some(rest_bytes - FRAGMENT_HEADER_BYTES)
    } else {
        None
    }
}

/// A fragment of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Start of the fragment, from the start of its segment.
    pub within: u32,
    /// Bytes of key, attributes and value in it.
    pub payload_bytes: usize,
    /// No fragment of the record follows.
    pub is_last: bool,
}

/// The fragments of a record in order, each in the segment behind that of the one before.
pub struct Pieces {
    next: Option<u32>,
    left_bytes: usize,
}

impl Pieces {
    /// The fragments of a record of `payload_bytes` (key, attributes and value) that starts at `within`.
    pub fn new(within: u32, payload_bytes: usize) -> Self {
        Self {
            next: Some(within),
            left_bytes: payload_bytes,
        }
    }
}

impl Iterator for Pieces {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let within = self.next?;
        let rest = SEGMENT.checked_sub(within)? as usize;
        let payload_bytes = cut(self.left_bytes, rest)?;
        self.left_bytes -= payload_bytes;
        let is_last = self.left_bytes == 0;
        self.next = (!is_last).then_some(PAYLOAD_START);
        Some(Piece {
            within,
            payload_bytes,
            is_last,
        })
    }
}

/// The most segments that must be opened for a unit whose records have these payloads, wherever it starts: counted
/// for an open segment that is full.
pub(super) fn segments_needed(payloads: impl Iterator<Item = usize>) -> usize {
    let (mut segments, mut rest) = (0, 0);
    for payload_bytes in payloads {
        let mut left = payload_bytes;
        loop {
            match cut(left, rest) {
                Some(bytes) => {
                    rest -= fragment_bytes(bytes);
                    left -= bytes;
                    if left == 0 {
                        break;
                    }
                }
                None => {
                    segments += 1;
                    rest = (SEGMENT - PAYLOAD_START) as usize;
                }
            }
        }
    }
    segments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_fits_is_whole() {
        let pieces: Vec<_> = Pieces::new(SEGMENT - 24, 8).collect();
        assert_eq!(
            pieces,
            [Piece {
                within: SEGMENT - 24,
                payload_bytes: 8,
                is_last: true
            }]
        );
        let empty: Vec<_> = Pieces::new(SEGMENT - 16, 0).collect();
        assert_eq!(
            empty,
            [Piece {
                within: SEGMENT - 16,
                payload_bytes: 0,
                is_last: true
            }]
        );
    }

    #[test]
    fn every_payload_byte_is_in_one_piece_and_pieces_fill_their_segments() {
        for rest in [24, 32, 4096, SEGMENT - PAYLOAD_START] {
            for payload in [9, 17, 4081, 2 << 20, 10 << 20] {
                let pieces: Vec<_> = Pieces::new(SEGMENT - rest, payload).collect();
                assert_eq!(
                    pieces.iter().map(|p| p.payload_bytes).sum::<usize>(),
                    payload
                );
                let (last, others) = pieces.split_last().unwrap();
                assert!(last.is_last);
                for piece in others {
                    let end = piece.within as usize + fragment_bytes(piece.payload_bytes);
                    assert!(!piece.is_last && end == SEGMENT as usize);
                }
            }
        }
    }

    #[test]
    fn a_rest_too_short_for_a_fragment_takes_nothing() {
        assert_eq!(cut(1, 16), None);
        assert_eq!(cut(9, 24), Some(8));
        assert_eq!(Pieces::new(SEGMENT, 1).count(), 0);
        assert_eq!(Pieces::new(SEGMENT + 8, 1).count(), 0);
    }

    #[test]
    fn segments_needed_counts_from_a_full_segment() {
        let whole = (SEGMENT - PAYLOAD_START) as usize - 16;
        assert_eq!(segments_needed([whole].into_iter()), 1);
        assert_eq!(segments_needed([whole, 0].into_iter()), 2);
        assert_eq!(segments_needed([whole + 1].into_iter()), 2);
        assert_eq!(segments_needed([1 << 30].into_iter()), 514);
    }
}
