//! The life of a log's segments: what recovery finds of them, and how they become free.
//!
//! A segment that a log leaves is retired first: durable as free from the next checkpoint on, but withheld until no
//! reader reaches it, because a replay of the checkpoint before takes it for the log's.

use kreon_base::{Error, LogId, Result, SegmentId};

use super::segment::{Segment, Usage};
use super::segments::Segments;

pub fn of(segments: &Segments, log: LogId) -> Vec<(SegmentId, u64)> {
    let mut found: Vec<_> = segments
        .all()
        .filter_map(|(id, segment)| match segment.usage() {
            Usage::Log { log: l, sequence } if l == log => Some((id, sequence)),
            _ => None,
        })
        .collect();
    found.sort_by_key(|(_, sequence)| *sequence);
    found
}

pub fn claim(segments: &mut Segments, id: SegmentId, log: LogId, sequence: u64) -> Result<()> {
    let usage = Usage::Log { log, sequence };
    match segments.get(id).map(Segment::usage) {
        Some(found) if found == usage => Ok(()),
        Some(Usage::Free) => segments.change_recorded(id, |segment| {
            segment.take(usage);
            segment.is_backed = true;
        }),
        _ => Err(Error::corruption(format!(
            "{id} continues {log} as number {sequence}, but holds something else"
        ))),
    }
}

pub fn give_up(segments: &mut Segments, id: SegmentId) -> Result<()> {
    if segments.get(id).is_some_and(|s| s.live_bytes() != 0) {
        return Err(Error::corruption(format!(
            "{id} is not part of the log, but has live bytes"
        )));
    }
    segments.change_recorded(id, Segment::give_up)
}

pub fn retire_dead(
    segments: &mut Segments,
    log: LogId,
    marker_sequence: u64,
) -> Result<Vec<SegmentId>> {
    let is_dead = |segment: &Segment| {
        matches!(segment.usage(), Usage::Log { log: l, sequence }
            if l == log && sequence < marker_sequence)
            && segment.live_bytes() == 0
    };
    let dead = segments.all().filter(|(_, segment)| is_dead(segment));
    let dead: Vec<_> = dead.map(|(id, _)| id).collect();
    for id in &dead {
        segments.change_recorded(*id, |segment| segment.retire(true))?;
    }
    Ok(dead)
}
