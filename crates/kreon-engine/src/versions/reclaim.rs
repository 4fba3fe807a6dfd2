//! Reclaims retired pages and segments that no reader reaches any more.

use kreon_base::{Result, SEGMENT_PAGES, planted};
use kreon_sync::Ordering;
use kreon_volume::page_runs::discard;

use super::Versions;

impl Versions {
    /// Frees the retired pages and segments that no view reaches any more.
    pub fn reclaim(&self) -> Result<()> {
        let _alone = self.reclaiming.lock();
        let reclaimed = self.storage.views.reclaim();
        if reclaimed.is_empty() {
            return Ok(());
        }
        for retired in reclaimed {
            discard(&self.storage.mapping, &retired.pages);
            for segment in &retired.segments {
                let (first, pages) = (segment.first_page(), SEGMENT_PAGES);
                planted!(FrameOfEarlierUse => let pages = 0);
                self.storage.mapping.discard(first, pages);
                self.storage.log.release(*segment)?;
                self.storage.dead.forget(*segment);
            }
            let mut allocator = self.storage.allocator.lock();
            allocator.release_pages(&retired.pages)?;
            self.segments_freed
                .fetch_add(retired.segments.len() as u64, Ordering::Relaxed);
            for segment in retired.segments {
                allocator.reuse_segment(segment)?;
            }
        }
        self.space.set_reserve();
        self.space.plan_space();
        self.storage.allocator.lock().trim()
    }
}
