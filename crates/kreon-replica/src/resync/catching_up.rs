//! Log for a joiner that was slower than the primary uses the buffers of its log again.
//!
//! The copy goes on without its log. In the end the log that it lacks is read from the primary's file, up to what is durable
//! there, as blocks; what was written meanwhile is the next, shorter gap. When a gap is short the tap goes on behind it. A
//! segment of the log that was freed meanwhile needs no copy: no replay reads it.

use std::cmp::Ordering;
use std::ops::Range;

use kreon_base::{LogId, Lsn, Result};
use kreon_device::Device;
use kreon_engine::{Engine, Occupied};
use kreon_format::{LOG_HEADER_BYTES, place_of};
use kreon_wire::Member;
use kreon_wire::limits::BLOCK_BYTES;

use crate::mirror::{Mirror, block_border};

/// The main log; moved records are written as pages are.
pub(super) const MAIN_LOG: LogId = LogId(0);

/// A gap of so many bytes is short: what is written while it is sent fits the buffers of the log, of which each has 2 MiB.
const SHORT_BYTES: u64 = 1 << 20;

/// Sends a joiner all that it is owed, and brings its log to where the tap can go on; does not wait for it to be durable.
/// Returns only when the joiner has become fast enough, or its stream has ended.
///
/// # Errors
/// Those of the device and of a sync; why the joiner's stream has ended; `Closed`.
pub(super) fn catch_up(
    engine: &Engine,
    mirror: &Mirror,
    below: &dyn Device,
    member: Member,
) -> Result<()> {
    loop {
        while mirror.feed(member, below)? > 0 {}
        let Some(from) = mirror.log_behind(member)? else {
            return Ok(());
        };
        // What is durable is in the file.
        engine.sync()?;
        let upto = block_border(engine.log_durable()).max(from);
        let gap = gap(&engine.occupied()?, from, upto);
        let gap_bytes: u64 = gap.iter().map(|range| range.end - range.start).sum();
        tracing::debug!(%from, %upto, gap_bytes, "the log of a joiner is read from the file");
        mirror.owe(member, &gap)?;
        while mirror.feed(member, below)? > 0 {}
        match gap_bytes <= SHORT_BYTES {
            true => mirror.resume_log(member, upto)?,
            false => mirror.resume_log_behind(member, upto)?,
        }
    }
}

/// Blocks of the segments that hold log from `from` to `upto`, both borders of blocks.
fn gap(occupied: &Occupied, from: Lsn, upto: Lsn) -> Vec<Range<u64>> {
    let ((first, start), (last, end)) = (place_of(from), place_of(upto));
    let mut ranges = Vec::new();
    for log in occupied.log.iter().filter(|log| log.log == MAIN_LOG) {
        // The page of a segment's header goes before its first bytes.
        let start = match log.sequence.cmp(&first) {
            Ordering::Less => continue,
            Ordering::Equal if start > LOG_HEADER_BYTES => u64::from(start),
            _ => 0,
        };
        let end = match log.sequence.cmp(&last) {
            Ordering::Greater => continue,
            Ordering::Equal if end <= LOG_HEADER_BYTES => continue,
            Ordering::Equal => u64::from(end).min(log.bytes),
            Ordering::Less => log.bytes,
        };
        if start < end {
            let at = log.segment.offset_bytes();
            ranges.push(at + start..at + end.next_multiple_of(BLOCK_BYTES));
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use kreon_base::{SEGMENT_BYTES, SegmentId};
    use kreon_format::lsn_at;
    use kreon_volume::OccupiedLog;

    use super::*;

    #[test]
    fn a_gap_is_what_is_still_there_of_the_segments_between() {
        let segment = |id: u32, log: u8, sequence: u64| OccupiedLog {
            segment: SegmentId(id),
            log: LogId(log.into()),
            sequence,
            bytes: SEGMENT_BYTES,
        };
        let occupied = Occupied {
            // Sequence 7 was freed; 6 of another log is pages to a mirror.
            log: vec![
                segment(9, 0, 5),
                segment(4, 0, 6),
                segment(3, 1, 6),
                segment(8, 0, 8),
            ],
            ..Occupied::default()
        };
        let at = |id: u64| id * SEGMENT_BYTES;
        assert_eq!(
            gap(&occupied, lsn_at(5, 8192), lsn_at(8, 12288)),
            [at(9) + 8192..at(10), at(4)..at(5), at(8)..at(8) + 12288]
        );
        assert_eq!(
            gap(
                &occupied,
                lsn_at(6, LOG_HEADER_BYTES),
                lsn_at(8, LOG_HEADER_BYTES)
            ),
            std::slice::from_ref(&(at(4)..at(5)))
        );
        assert_eq!(gap(&occupied, lsn_at(8, 8192), lsn_at(8, 8192)), []);
    }
}
