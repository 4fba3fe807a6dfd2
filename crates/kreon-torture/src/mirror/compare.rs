//! Whether a backup's volume is the primary's.

use std::cmp::Ordering;
use std::ops::Range;

use kreon_base::{Error, Lsn, PAGE_BYTES, SEGMENT_BYTES};
use kreon_engine::Engine;
use kreon_format::{LOG_HEADER_BYTES, lsn_at, place_of};
use kreon_replica::mirror::Mirror;
use kreon_sim::SimDevice;

use super::pair::Pair;

/// Where the log stands that both have up to `end`, and behind which they may differ up to the border where the next run goes
/// on: a cut leaves there what had arrived, on each volume something else, as it does on one without a mirror. On the one
/// with more log these may be whole units. Nobody was told of them, and no replay takes them: the next run records both
/// positions before it writes. So nothing there is sent, and no block with acknowledged log is written again.
pub fn seam(end: Lsn) -> Range<Lsn> {
    let (sequence, within) = place_of(end);
    end..lsn_at(sequence, within.next_multiple_of(PAGE_BYTES as u32))
}

/// All that is in use is the same on both volumes, but for the seams of the log.
///
/// # Errors
/// What differs.
pub fn compare(
    engine: &Engine,
    (pair, backup): (&Pair, &SimDevice),
    mirror: &Mirror,
) -> Result<(), String> {
    let said = |error: Error| error.to_string();
    engine.sync().map_err(said)?;
    mirror.barrier().map_err(said)?;
    let occupied = engine.occupied().map_err(said)?;
    let (one, other) = (pair.primary.image(), backup.image());
    for (first, count) in &occupied.pages {
        for page in first.0..first.0 + count {
            let at = page * PAGE_BYTES as u64;
            if one.bytes(at, PAGE_BYTES) != other.bytes(at, PAGE_BYTES) {
                return Err(format!("page {page} differs between primary and backup"));
            }
        }
    }
    let tail = engine.log_tail();
    for log in occupied.log.iter().filter(|log| log.log.0 == 0) {
        let len_bytes = written_bytes(log.sequence, tail);
        let at = log.segment.offset_bytes();
        let (one, mut other) = (one.bytes(at, len_bytes), other.bytes(at, len_bytes));
        for seam in &pair.seams {
            blend((&one, &mut other), log.sequence, seam);
        }
        let bytes = one.iter().zip(&other);
        if let Some(byte) = bytes.enumerate().find(|(_, (a, b))| a != b) {
            let (segment, sequence, seams) = (log.segment, log.sequence, &pair.seams);
            return Err(format!(
                "{segment} of the log, number {sequence}, differs from byte {} on; its seams are {seams:?}, its tail is {tail}",
                byte.0
            ));
        }
    }
    Ok(())
}

/// Bytes at the start of the log's segment with this sequence that are written when the log ends at `tail`. A segment that was
/// reserved, or opened and holds no record yet, may have its header on one volume only: it goes with the first record.
fn written_bytes(sequence: u64, tail: Lsn) -> usize {
    let (last, within) = place_of(tail);
    match sequence.cmp(&last) {
        Ordering::Less => SEGMENT_BYTES as usize,
        Ordering::Equal if within > LOG_HEADER_BYTES => within as usize,
        Ordering::Equal | Ordering::Greater => 0,
    }
}

/// Makes `other` like `one` in the part of a seam that lies in the segment with this sequence.
fn blend((one, other): (&[u8], &mut [u8]), sequence: u64, seam: &Range<Lsn>) {
    let (number, start) = place_of(seam.start);
    let len_bytes = (seam.end.0 - seam.start.0) as usize;
    let start = start as usize;
    let range = start..(start + len_bytes).min(one.len());
    if number == sequence
        && let (Some(from), Some(to)) = (one.get(range.clone()), other.get_mut(range))
    {
        to.copy_from_slice(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_ends_on_a_border_of_segments_has_written_nothing_of_the_next_one() {
        let border = lsn_at(6, LOG_HEADER_BYTES);
        assert_eq!(written_bytes(5, border), SEGMENT_BYTES as usize);
        assert_eq!(written_bytes(6, border), 0);
        assert_eq!(written_bytes(7, border), 0);
        let one_page = LOG_HEADER_BYTES as usize + PAGE_BYTES;
        assert_eq!(written_bytes(6, lsn_at(6, one_page as u32)), one_page);
    }
}
