//! Which segments of the log a checkpoint keeps for the change feed although it could free them.

use std::ops::Range;

use kreon_base::{Lsn, SEGMENT_BYTES, planted};
use kreon_format::{LOG_HEADER_BYTES, LogRecord, lsn_at};
use kreon_volume::Allocator;

use super::catalogue::MAIN_LOG;
use crate::state::Storage;

/// What the checkpoint tells of the main log.
pub fn record(storage: &Storage, marker: Lsn) -> LogRecord {
    let (feed, log) = (&storage.feed, &storage.log);
    if !feed.is_on() {
        planted!(UnfollowedRunForgotten => return log.followed_record(marker, marker));
        return log.checkpoint_record(marker);
    }
    let kept = lsn_at(feed.wanted_from(log), LOG_HEADER_BYTES);
    log.followed_record(marker, kept)
}

/// Decides which segments before number `needed` are kept that nobody else needs: those from the returned number on. The
/// oldest are given up until they take no more than half of the space that there would be without them, with the `retired`
/// segments that only readers hold: the rest is for what is written before the next checkpoint.
pub fn keep(storage: &Storage, allocator: &Allocator, needed: u64, retired: u64) -> u64 {
    let feed = &storage.feed;
    let mut from = feed.wanted_from(&storage.log);
    if !feed.is_on() {
        return from;
    }
    let idle = idle(allocator, from..needed);
    let room = allocator.room_bytes() / SEGMENT_BYTES + retired;
    let surplus = (idle.len() as u64).saturating_sub(room).div_ceil(2) as usize;
    if let Some(last) = surplus.checked_sub(1).and_then(|last| idle.get(last)) {
        from = last + 1;
        feed.give_up_before(from);
    }
    feed.set_kept(from..needed, (idle.len() - surplus) as u64);
    from
}

/// The segments of the main log with these numbers that have no live byte, in their order.
pub fn idle(allocator: &Allocator, numbers: Range<u64>) -> Vec<u64> {
    let segments = allocator.log_segments(MAIN_LOG).into_iter();
    let idle = segments.filter(|(segment, sequence)| {
        numbers.contains(sequence) && allocator.live_bytes(*segment) == 0
    });
    idle.map(|(_, sequence)| sequence).collect()
}
