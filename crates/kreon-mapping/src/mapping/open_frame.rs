//! Frames that a caller fills in place, and that become pages without a copy.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use kreon_base::{Error, PageBytes, PageNo, Priority, Result};

use super::Mapping;
use crate::fresh;
use crate::well::{FrameSpace, FreeFrame};

/// Why the token of an open frame is there.
const HELD: &str = "an open frame has its token until it is published or dropped";

/// A frame that holds no page yet, in the hands of a caller: only its owner reads or writes its bytes, which are
/// arbitrary at first. It becomes a page by [`Mapping::publish`]; dropped, it goes back to the free frames.
///
/// An open frame keeps its mapping alive.
pub struct OpenFrame {
    mapping: Arc<Mapping>,
    /// Taken by `publish` and `drop`, which nobody can call twice.
    token: Option<FreeFrame>,
}

impl Mapping {
    /// A frame to be filled in place, with arbitrary content. A page is evicted for it if need be; a dirty one is written
    /// first. `None` if half of the frames are open, or none was to be had now: readers hold all the others, too many pages
    /// are dirty, or the device takes none of them.
    ///
    /// Open frames are as good as gone for everybody else: reads and writes share the rest.
    pub fn open_frame(self: &Arc<Self>) -> Option<OpenFrame> {
        let frames = &self.reader().frames;
        if !frames.open_share().claim() {
            return None;
        }
        let Some(token) = frames.take() else {
            frames.open_share().release();
            return None;
        };
        Some(OpenFrame {
            mapping: Arc::clone(self),
            token: Some(token),
        })
    }

    /// Most frames that can be open at once: half of all.
    pub fn open_frames_max(&self) -> usize {
        self.reader().frames.open_share().max()
    }

    /// Gives a page the content of an open frame: [`fresh`](Self::fresh) without its copy. The frame becomes that of the
    /// page. If the page array has no room for the page, it is written to the device at once instead.
    ///
    /// # Errors
    /// As [`fresh`](Self::fresh): those of the device, in writing this page or others. `InvalidArgument` if the volume can
    /// never have the page, or the frame is of another mapping: then no page has changed. The content of the frame is
    /// lost with an error, unless the page is resident.
    pub fn publish(&self, page: PageNo, priority: Priority, mut frame: OpenFrame) -> Result<()> {
        if !std::ptr::eq(self, Arc::as_ptr(&frame.mapping)) {
            return Err(Error::invalid(format!(
                "{page} cannot be published in a frame of another mapping"
            )));
        }
        let token = frame.token.take().expect(HELD);
        // The frame counts as open until `frame` is dropped here, so that the share is never exceeded.
        fresh::publish(self.reader(), page, priority, token)
    }
}

impl OpenFrame {
    fn space(&self) -> &FrameSpace {
        self.mapping.reader().table().space()
    }
}

impl Deref for OpenFrame {
    type Target = PageBytes;

    #[inline]
    fn deref(&self) -> &PageBytes {
        self.space().bytes(self.token.as_ref().expect(HELD))
    }
}

impl DerefMut for OpenFrame {
    #[inline]
    fn deref_mut(&mut self) -> &mut PageBytes {
        let space = self.mapping.reader().table().space();
        space.bytes_mut(self.token.as_mut().expect(HELD))
    }
}

impl Drop for OpenFrame {
    fn drop(&mut self) {
        let frames = &self.mapping.reader().frames;
        if let Some(token) = self.token.take() {
            frames.table().pool().put(token);
        }
        frames.open_share().release();
    }
}

impl fmt::Debug for OpenFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenFrame")
            .field("frame", &self.token.as_ref().map(FreeFrame::number))
            .finish_non_exhaustive()
    }
}
