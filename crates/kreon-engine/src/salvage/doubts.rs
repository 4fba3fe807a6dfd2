//! Signs that the source once held more than is visible now.

use kreon_base::{
    Incarnation, LogOffset, Lsn, PAGE_BYTES, PageBytes, PageNo, SEGMENT_PAGES, SegmentId,
};
use kreon_format::{
    Catalogue, Fragment, FragmentSeal, LogRecord, LogSegmentHeader, Superblock, incarnation_mark,
    place_of,
};

use super::log_walk::LogAt;
use super::source::Source;
use crate::checkpoint::catalogue::MAIN_LOG;
use kreon_log::SEGMENT;

/// Most runs behind the last known one. Records carry only 16 bits of their incarnation, so a larger distance is taken
/// for an old run. Also the assumed number of later runs if no superblock names the last one.
const RUNS_AHEAD_MAX: u16 = 1024;

/// The last run that may have written to the log.
pub fn newest_run(superblock: Option<&Superblock>, headers: &[LogSegmentHeader]) -> Incarnation {
    let seen = headers.iter().map(|header| header.incarnation).max();
    let seen = seen.unwrap_or(Incarnation(0));
    match superblock {
        Some(superblock) if superblock.incarnation >= seen => superblock.incarnation,
        _ => Incarnation(seen.0.saturating_add(u64::from(RUNS_AHEAD_MAX))),
    }
}

/// The last run recorded by a checkpoint.
pub fn last_run(log: &LogRecord) -> Incarnation {
    let last = log.resumes.last().map(|last| last.incarnation);
    last.unwrap_or(log.incarnation).max(log.incarnation)
}

/// Whether headers prove that the log continued in a way that the checkpoint excludes; an open checks the same.
/// `known`: the log segments of the checkpoint.
pub fn headers_are_newer(
    catalogue: &Catalogue,
    superblock: Option<&Superblock>,
    headers: &[LogSegmentHeader],
    known: &[(SegmentId, u64)],
) -> bool {
    let Some(log) = catalogue.logs.iter().find(|log| log.id == MAIN_LOG) else {
        return !headers.is_empty();
    };
    let newest = superblock.map_or(Incarnation(0), |superblock| superblock.incarnation);
    let newest = newest.max(last_run(log));
    headers.iter().any(|header| {
        let mut places = known
            .iter()
            .filter(|(segment, _)| *segment == header.segment);
        let is_later = header.incarnation == newest
            && header.log == log.id
            && places.any(|(_, sequence)| header.sequence > *sequence);
        header.incarnation > newest || is_later
    })
}

/// Whether a run unknown to `log` continued behind `end`.
pub fn is_gone_on(at: LogAt<'_>, log: &LogRecord, end: Lsn) -> bool {
    let (sequence, within) = place_of(end);
    let resume = within.next_multiple_of(PAGE_BYTES as u32);
    let Some(placed) = at.map.get(sequence).filter(|_| resume < SEGMENT) else {
        return false;
    };
    let mut bytes = Vec::new();
    for page in pages_from(at.source, placed.segment, resume) {
        bytes.extend_from_slice(&page.map_or([0; PAGE_BYTES], |page| *page));
    }
    let seal = FragmentSeal {
        store: at.store,
        sequence,
    };
    let offset = LogOffset(placed.segment.offset_bytes() + u64::from(resume));
    let Ok(Fragment::Record { header, .. }) = Fragment::decode(&bytes, &seal, offset) else {
        return false;
    };
    let newest = incarnation_mark(last_run(log));
    (1..=RUNS_AHEAD_MAX).contains(&header.incarnation.wrapping_sub(newest))
}

/// Whether the log may have segments that no readable page names: the volume is shorter than its superblock says, or
/// the first page of a segment is unreadable.
pub fn hides_segments(source: &Source, superblock: Option<&Superblock>) -> bool {
    let is_cut = superblock
        .is_some_and(|superblock| SegmentId(superblock.segments).offset_bytes() > source.len_bytes);
    is_cut || source.first_pages().any(|(_, page)| page.is_none())
}

/// Whether the log, which seems to end at `stopped`, may continue in unreadable pages or unknown segments.
pub fn is_end_unread(at: LogAt<'_>, stopped: Lsn, hides_segments: bool) -> bool {
    let (sequence, within) = place_of(stopped);
    let Some(placed) = at.map.get(sequence) else {
        return hides_segments;
    };
    let pages = pages_from(at.source, placed.segment, within);
    pages.iter().any(Option::is_none)
}

/// The pages of `segment` from that with the byte `within` on.
fn pages_from(source: &Source, segment: SegmentId, within: u32) -> Vec<Option<Box<PageBytes>>> {
    let first = segment.first_page().0;
    let from = first + u64::from(within) / PAGE_BYTES as u64;
    let pages: Vec<_> = (from..first + SEGMENT_PAGES).map(PageNo).collect();
    source.pages(&pages)
}
