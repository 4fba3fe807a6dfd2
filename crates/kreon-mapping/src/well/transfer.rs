//! The token of a page that is being written back.

use kreon_base::sync::{AtomicU32, Ordering::Release};
use kreon_base::{PageBytes, PageNo};

use super::entry::PageEntry;
use super::frames::Frames;

/// A dirty page on its way to the device. While its entry says so, the page keeps its frame, and no other thread writes
/// it.
///
/// To be made by the thread that set the flag in `entry`, with acquire order, over a dirty `frame`.
pub(crate) struct PageWrite<'a> {
    pub(super) frames: &'a Frames,
    pub(super) entry: &'a AtomicU32,
    pub(super) frame: u32,
    pub(super) page: PageNo,
}

impl PageWrite<'_> {
    pub(crate) const fn page(&self) -> PageNo {
        self.page
    }

    pub(crate) fn bytes(&self) -> &PageBytes {
        // SAFETY: whoever made this token saw the frame published, with acquire order, as it set the
        // flag. A page with that flag is not retired (rule 2), only `finish` clears it, and that
        // consumes the token, which this reference borrows.
        unsafe { self.frames.published(self.frame) }
    }

    /// The write has ended. The page is clean if the device took it, else as dirty as before.
    pub(crate) fn finish(self, taken: bool) {
        let mask = if taken {
            PageEntry::WRITTEN
        } else {
            PageEntry::NOT_WRITTEN
        };
        // Release: the reads of the bytes come before any reuse of the frame.
        self.entry.fetch_and(mask, Release);
    }
}
