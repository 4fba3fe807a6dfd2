//! The share of the frames that may be open: in the hands of a caller who fills them in place.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// At most one frame in this many is open: the rest is for pages that are read and written back.
const OPEN_SHARE: usize = 2;

/// Open frames, and their maximum.
pub(crate) struct OpenShare {
    open: AtomicUsize,
    max: usize,
}

impl OpenShare {
    /// None open, of `frames` frames.
    pub(super) fn new(frames: usize) -> Self {
        Self {
            open: AtomicUsize::new(0),
            max: frames / OPEN_SHARE,
        }
    }

    /// Counts one more open frame, if the share has room for it.
    pub(crate) fn claim(&self) -> bool {
        let claim = |open| (open < self.max).then_some(open + 1);
        self.open.fetch_update(Relaxed, Relaxed, claim).is_ok()
    }

    /// A frame that was claimed is not open any more.
    pub(crate) fn release(&self) {
        let before = self.open.fetch_sub(1, Relaxed);
        debug_assert!((1..=self.max).contains(&before), "{before} frames open");
    }

    /// Frames that are open now.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Relaxed)
    }

    /// Most frames that can be open at once.
    pub(crate) fn max(&self) -> usize {
        self.max
    }
}
