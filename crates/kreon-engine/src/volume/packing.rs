//! Pages for trees that are made anew one after the other, apart from those of other trees: the segments that the old
//! trees leave become free as a whole.

use kreon_base::{PageNo, Result, SEGMENT_PAGES, SegmentId};

use super::allocator::{Allocator, Purpose, Usage};

impl Allocator {
    /// What is packed from now on stands apart from all pages that are in use now.
    pub fn begin_packing(&mut self) {
        self.packed.clear();
    }

    /// Hands out up to `pages_max` consecutive pages in segments of packed trees; at least one.
    ///
    /// # Errors
    /// `OutOfSpace`.
    pub fn allocate_packed(&mut self, pages_max: u64) -> Result<(PageNo, u64)> {
        let wanted = pages_max.clamp(1, SEGMENT_PAGES);
        let run = |id: &u32| {
            let segment = self.segments.get(*id as usize);
            let segment = segment.filter(|found| found.usage == Usage::Tree && found.backed);
            segment.map_or(0, |found| found.used.longest_gap().1)
        };
        let best = self.packed.iter().map(|id| (run(id), *id)).max();
        let id = match best {
            Some((run, id)) if run > 0 => SegmentId(id),
            _ => self.allocate_segment(Usage::Tree, Purpose::Upkeep)?,
        };
        self.packed.insert(id.0);
        self.take_pages(id, wanted, Purpose::Upkeep)
    }
}
