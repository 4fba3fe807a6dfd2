//! Two pages whose frames lie side by side, as one slice.

use std::slice;

use kreon_base::PAGE_BYTES;

use super::space::Pinned;

impl Pinned<'_> {
    /// This page and `next` behind it, if their frames are neighbours in memory.
    #[inline]
    pub(crate) fn joined<'p>(&'p self, next: &'p Pinned<'_>) -> Option<&'p [u8]> {
        let (low, high) = (self.bytes().as_ptr(), next.bytes().as_ptr());
        if !std::ptr::eq(self.frames, next.frames) || low.wrapping_add(PAGE_BYTES) != high {
            return None;
        }
        let start = self.frames.address(self.frame).as_ptr().cast::<u8>();
        // SAFETY: the pointer is derived from the one mapping that holds all frames of `frames`, in which both frames lie,
        // the second right behind the first. Each is published and stays so while its pin is held, by rule 3, as in
        // `bytes`; the slice borrows both pins.
        Some(unsafe { slice::from_raw_parts(start, 2 * PAGE_BYTES) })
    }
}
