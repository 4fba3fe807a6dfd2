//! What a copy of a volume must have.

use kreon_base::{LogId, PageNo, SEGMENT_PAGES, SegmentId};
use kreon_format::SUPERBLOCK_PAGES;

use super::segment::{Segment, Usage};
use super::segments::Segments;

/// All that is in use on a volume at one moment. A volume that has these bytes, blocks for the backed segments and the slots
/// of the next superblock is a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Occupied {
    /// Length of the volume in segments.
    pub segments: u32,
    /// Pages in use in segments of pages, as runs (first, count), ascending: those of trees, images and catalogue that
    /// readers or the next checkpoint may reach, those that work under way has taken and perhaps not yet written, and the
    /// heads of groups with the bitmap. The pages of superblock slots are left out.
    pub pages: Vec<(PageNo, u64)>,
    /// Segments that logs have, ascending; the last of a log may be filled in part, or reserved and empty.
    pub log: Vec<OccupiedLog>,
    /// Segments that the file system has blocks for, ascending, with how many bytes from their start. Free ones may be
    /// written next, by whoever takes them.
    pub backed: Vec<(SegmentId, u64)>,
}

/// A segment of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OccupiedLog {
    /// Which.
    pub segment: SegmentId,
    /// The log that has it.
    pub log: LogId,
    /// Its place in that log.
    pub sequence: u64,
    /// It may be written up to here, in bytes from its start.
    pub bytes: u64,
}

impl Occupied {
    pub(crate) fn of(segments: &Segments) -> Self {
        let mut occupied = Self {
            segments: segments.count(),
            ..Self::default()
        };
        for (id, segment) in segments.all() {
            occupied.add(id, segment);
        }
        occupied
    }

    fn add(&mut self, id: SegmentId, segment: &Segment) {
        let bytes = segment.taken_bytes();
        if bytes > 0 {
            self.backed.push((id, bytes));
        }
        match segment.usage() {
            Usage::Free => {}
            Usage::Log { log, sequence } => self.log.push(OccupiedLog {
                segment: id,
                log,
                sequence,
                bytes,
            }),
            Usage::Tree => {
                let pages = (0..SEGMENT_PAGES).filter(|page| segment.is_used(*page));
                for page in pages.map(|page| PageNo(id.first_page().0 + page)) {
                    self.add_page(page);
                }
            }
        }
    }

    fn add_page(&mut self, page: PageNo) {
        if SUPERBLOCK_PAGES.contains(&page) {
            return;
        }
        match self.pages.last_mut() {
            Some((first, count)) if first.0 + *count == page.0 => *count += 1,
            _ => self.pages.push((page, 1)),
        }
    }
}
