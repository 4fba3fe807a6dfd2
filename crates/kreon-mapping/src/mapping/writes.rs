//! Pages that get new content, the writes of dirty pages, and frames as memory.

use kreon_base::{PageBytes, PageNo, Priority, Result};

use super::Mapping;
use crate::evict::LentFrames;
use crate::{admit, fresh};

impl Mapping {
    /// Gives a page new content, without reading the device (`Kreon 3.3.1`). The page is resident and dirty then; its
    /// content does not change again until the page is discarded. Nothing that the mapping knew under this number before
    /// can be read or written any more; the call waits for the end of a write that is under way.
    ///
    /// When more than the given share of the frames is dirty, the call writes some pages back. If there is no frame to be
    /// had, it writes the page to the device at once.
    ///
    /// No two threads may make the same page fresh at the same time, nor may one make it fresh while another discards it.
    ///
    /// # Errors
    /// Those of the device, in writing this page or others. The page may be resident or not: discard
    /// it, or make it fresh again.
    pub fn fresh(&self, page: PageNo, priority: Priority, bytes: &PageBytes) -> Result<()> {
        fresh::fresh(self.reader(), page, priority, bytes)
    }

    /// Keeps pages that were written past the mapping, from `first` on: `bytes` are whole pages, and the device has them. Only
    /// free frames are used, and only while they are plenty; pages without one are loaded when they are read.
    ///
    /// No thread may use the pages for something else before the call returns.
    pub fn admit(&self, first: PageNo, priority: Priority, bytes: &[u8]) {
        admit::admit(self.reader(), first, priority, bytes);
    }

    /// Makes pages `first` to `first + pages - 1` absent, dirty or not: their content is never written, and a load that is
    /// under way will not make its page resident. When the call returns, no write of them is under way, so that the range
    /// can be used past the mapping. Pages that readers are using stay intact until they are done.
    ///
    /// A whole range may be discarded, whether or not its pages were ever resident: a stripe without frames costs one
    /// look.
    pub fn discard(&self, first: PageNo, pages: u64) {
        fresh::discard(self.reader(), first, pages);
    }

    /// Writes every page that was made fresh before the call to the device, without a flush. Other threads may go on
    /// making pages fresh (the non-blocking `msync` of `Kreon 3.3.1`); some of theirs are written too.
    ///
    /// # Errors
    /// The first of the device. What was not written stays dirty, and a later call tries again.
    pub fn sync(&self) -> Result<()> {
        self.reader().frames.writer().sync(self.reader().table())
    }

    /// Writes those of the pages that are dirty to the device, neighbours together, without a flush. Sorts them. For a
    /// caller that makes many pages and does not want all of them to wait for a [`sync`](Self::sync).
    ///
    /// # Errors
    /// The first of the device. What was not written stays dirty.
    pub fn write_back(&self, pages: &mut [PageNo]) -> Result<()> {
        let writer = self.reader().frames.writer();
        writer.write_pages(self.reader().table(), pages)
    }

    /// Up to `wanted` frames as memory with arbitrary content, at most a quarter of all. Pages are evicted for them. None
    /// are lent if readers hold all, or the device takes no dirty page.
    pub fn lend_frames(&self, wanted: usize) -> LentFrames<'_> {
        LentFrames::new(&self.reader().frames, wanted)
    }

    /// Whether enough frames are free for log pages to be kept whole.
    pub fn has_plenty_of_frames(&self) -> bool {
        self.reader().frames.are_plenty()
    }
}
