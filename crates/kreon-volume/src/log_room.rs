//! How far the log may write its segments.
//!
//! A *small* store backs only the front of its first log segment, and names the next segment without backing it: whole
//! segments would be most of the space that it takes. Half of the front is for new data, the rest for deletions of that
//! data. When the log needs more, the store stops being small: the segment is backed as a whole, and the reserve gets
//! its least size.

use kreon_base::{LogId, PAGE_BYTES, Result, SEGMENT_BYTES, SegmentId};
use kreon_format::MOVED_SEQUENCE_MIN;

use super::purpose::Purpose;
use super::segment::Usage;
use super::supply::Supply;
use super::tuning::{FRONT_BYTES, GRANT_BYTES_MIN, SMALL_SEGMENTS};

const SEGMENT: u32 = SEGMENT_BYTES as u32;

pub fn take_segment(
    supply: &mut Supply,
    log: LogId,
    sequence: u64,
    purpose: Purpose,
) -> Result<SegmentId> {
    let usage = Usage::Log { log, sequence };
    if supply.reserve.is_small
        && sequence < MOVED_SEQUENCE_MIN
        && let Some(id) = supply.take_unbacked(usage)?
    {
        return Ok(id);
    }
    supply.take_segment(usage, purpose)
}

pub fn back(
    supply: &mut Supply,
    id: SegmentId,
    (from, needed): (u32, u32),
    purpose: Purpose,
) -> Result<u32> {
    let front = supply.segments.known(id)?.front_bytes;
    if supply.reserve.is_small && needed <= FRONT_BYTES {
        if front < 2 * FRONT_BYTES {
            supply
                .backing
                .back_front(&mut supply.segments, id, 2 * FRONT_BYTES)?;
        }
        let granted = supply.grant(u64::from(FRONT_BYTES.saturating_sub(from)), purpose);
        if granted.is_ok() || purpose != Purpose::Delete {
            return granted.map(|()| FRONT_BYTES);
        }
    }
    if purpose == Purpose::Delete && needed <= front {
        return Ok(needed.next_multiple_of(PAGE_BYTES as u32));
    }
    // From now on the store has its least reserve.
    supply.reserve.is_small = false;
    let upto = grant(supply, id, (from, needed), purpose)?;
    supply.back_whole(id, purpose)?;
    Ok(upto)
}

/// Counts a grant of plenty, or where that is refused, of as little as is needed. Returns up to where it goes.
fn grant(
    supply: &mut Supply,
    id: SegmentId,
    (from, needed): (u32, u32),
    purpose: Purpose,
) -> Result<u32> {
    let least = needed.next_multiple_of(PAGE_BYTES as u32).min(SEGMENT);
    let upto = plenty(supply.reserve.grant_bytes() as u32, needed).max(least);
    // New data may fill what a deletion is granted: beyond the least, deletions get no more than new data.
    let purpose_of_plenty = match purpose {
        Purpose::Delete => Purpose::Put,
        other => other,
    };
    let Err(error) = supply.grant(u64::from(upto.saturating_sub(from)), purpose_of_plenty) else {
        return Ok(upto);
    };
    if least == upto && purpose != Purpose::Delete {
        return Err(error);
    }
    let granted = supply.grant(u64::from(least.saturating_sub(from)), purpose);
    // The rest of a segment that has its blocks is never refused to deletions.
    if purpose != Purpose::Delete || !supply.segments.known(id)?.is_backed {
        granted?;
    }
    Ok(least)
}

/// Where a grant of `more` bytes behind `needed` ends, in whole blocks of the device: the end of the log is padded to
/// these. The last grant of a segment covers the rest of it.
fn plenty(more: u32, needed: u32) -> u32 {
    let more = more.max(GRANT_BYTES_MIN);
    let upto = needed
        .saturating_add(more)
        .next_multiple_of(GRANT_BYTES_MIN);
    match upto.saturating_add(more) < SEGMENT {
        true => upto,
        false => SEGMENT,
    }
}

pub fn settle_end(
    supply: &mut Supply,
    named: &[SegmentId],
    (last, end): (Option<SegmentId>, u32),
) -> Result<()> {
    for id in named {
        supply
            .segments
            .change(*id, |segment| segment.set_front_only(0))?;
    }
    if let Some(last) = last
        && end <= 2 * FRONT_BYTES
    {
        supply
            .segments
            .change(last, |segment| segment.set_front_only(2 * FRONT_BYTES))?;
    }
    supply.reserve.is_small = supply.segments.used_count() <= SMALL_SEGMENTS;
    Ok(())
}
