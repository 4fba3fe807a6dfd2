//! Which bytes of the log may come next.
//!
//! Each byte goes right behind the one before, or starts the next segment when that one is full. The log of a joiner that was
//! too slow goes on at a later place, at the border of a block: what lies between comes as blocks.

use kreon_base::{Lsn, SEGMENT_BYTES};
use kreon_format::{LOG_HEADER_BYTES, place_of};
use kreon_wire::Violation;
use kreon_wire::limits::BLOCK_BYTES;

/// The course of the log of one stream.
#[derive(Clone, Debug, Default)]
pub(super) struct LogCourse {
    /// Where the next byte belongs; `None`: at the border of any block.
    place: Option<LogPlace>,
    /// It may go on elsewhere.
    may_jump: bool,
    /// Where the log ended before the stream, if it is not copied.
    before: Option<Lsn>,
}

impl LogCourse {
    /// Of a joiner: it may go on elsewhere as long as copies may come, and once more with the first bytes behind them.
    pub fn of_joiner() -> Self {
        Self {
            may_jump: true,
            ..Self::default()
        }
    }

    /// Of a member whose log ended at `before`.
    pub fn behind(before: Lsn) -> Self {
        Self {
            before: Some(before),
            ..Self::default()
        }
    }

    /// All before this was taken, or there before the stream; `None`: that is not known.
    pub fn end(&self) -> Option<Lsn> {
        self.place.map(|place| place.lsn).or(self.before)
    }

    /// Takes `len_bytes` bytes that stand at `offset`, with positions from `lsn` to `end`, if they may come next.
    pub fn follow(
        &mut self,
        (lsn, offset): (Lsn, u64),
        (end, len_bytes): (Lsn, u64),
        is_joining: bool,
    ) -> Result<(), Violation> {
        let may_jump = self.may_jump;
        let before = self
            .place
            .filter(|place| !(may_jump && place.may_jump_to(lsn)));
        self.place = Some(LogPlace::follow(before, lsn, offset, end, len_bytes)?);
        self.may_jump &= is_joining;
        Ok(())
    }
}

/// Where the next byte of a log belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LogPlace {
    lsn: Lsn,
    offset: u64,
}

impl LogPlace {
    /// Whether a log may go on at a later position, elsewhere: what there is are whole blocks.
    fn may_jump_to(&self, lsn: Lsn) -> bool {
        self.offset.is_multiple_of(BLOCK_BYTES) && lsn > self.lsn
    }

    /// Checks that a packet of log may follow what came before; returns what may follow it.
    fn follow(
        before: Option<Self>,
        lsn: Lsn,
        offset: u64,
        end: Lsn,
        len_bytes: u64,
    ) -> Result<Self, Violation> {
        let within = (offset % SEGMENT_BYTES) as u32;
        let is_in_place = place_of(lsn).1 == within.max(LOG_HEADER_BYTES);
        let follows = match before {
            // Blocks are written as wholes.
            None => offset.is_multiple_of(BLOCK_BYTES),
            Some(before) if before.offset.is_multiple_of(SEGMENT_BYTES) => {
                before.lsn == lsn && within == 0
            }
            Some(before) => before == Self { lsn, offset },
        };
        match is_in_place && follows {
            true => Ok(Self {
                lsn: end,
                offset: offset + len_bytes,
            }),
            false => Err(Violation::Order),
        }
    }
}

#[cfg(test)]
mod tests {
    use kreon_format::lsn_at;

    use super::*;

    const SEGMENT: u64 = 5 * SEGMENT_BYTES;

    #[test]
    fn a_segment_follows_one_that_is_full_and_no_other() {
        let end = lsn_at(7, SEGMENT_BYTES as u32);
        let place = LogPlace::follow(
            None,
            lsn_at(7, 2 << 20 >> 1),
            SEGMENT + (1 << 20),
            end,
            1 << 20,
        )
        .unwrap();
        let next = 9 * SEGMENT_BYTES;
        let header = LogPlace::follow(Some(place), end, next, end, 4096).unwrap();
        assert_eq!(header.offset, next + 4096);
        // A gap in the middle of a segment; a segment without its header; a position of another place.
        let gap = LogPlace::follow(
            Some(header),
            Lsn(end.0 + 8),
            next + 4104,
            Lsn(end.0 + 16),
            8,
        );
        assert_eq!(gap, Err(Violation::Order));
        let headless = LogPlace::follow(Some(place), end, next + 4096, end, 4096);
        assert_eq!(headless, Err(Violation::Order));
        let elsewhere = LogPlace::follow(Some(header), end, next + 4104, Lsn(end.0 + 8), 8);
        assert_eq!(elsewhere, Err(Violation::Order));
    }

    #[test]
    fn a_stream_starts_its_log_at_the_border_of_a_block() {
        let lsn = lsn_at(7, 8200);
        let odd = LogPlace::follow(None, lsn, SEGMENT + 8200, Lsn(lsn.0 + 8), 8);
        assert_eq!(odd, Err(Violation::Order));
    }

    #[test]
    fn a_joiners_log_goes_on_later_from_whole_blocks_and_not_after_it_has_joined() {
        let mut course = LogCourse::of_joiner();
        let mut take = |sequence: u64, within: u32, len_bytes: u32, is_joining: bool| {
            let at = (lsn_at(sequence, within), SEGMENT + u64::from(within));
            let end = lsn_at(sequence, within + len_bytes);
            course.follow(at, (end, len_bytes.into()), is_joining)
        };
        take(7, 8192, 8, true).unwrap();
        assert_eq!(
            take(9, 8192, 8, true),
            Err(Violation::Order),
            "a block is not whole"
        );
        take(7, 8200, 4088, true).unwrap();
        assert_eq!(
            take(6, 8192, 8, true),
            Err(Violation::Order),
            "it goes back"
        );
        assert_eq!(
            take(9, 8200, 8, true),
            Err(Violation::Order),
            "within a block"
        );
        take(9, 8192, 4096, true).unwrap();
        take(10, 8192, 4096, false).unwrap();
        assert_eq!(take(12, 8192, 8, false), Err(Violation::Order));
        take(10, 12288, 8, false).unwrap();
    }
}
