//! Memory for direct I/O.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use kreon_base::PAGE_BYTES;

use crate::system::want_huge_pages;

/// Size of a huge page of the processor.
const HUGE_BYTES: usize = 2 << 20;

/// When memory is allocated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backing {
    /// At once, in huge pages where possible: no page faults later, and none that can fail.
    #[default]
    Ahead,
    /// Page by page of 4 KiB at the first access: cheap if little of the memory is used.
    Sparse,
}

/// Zeroed memory that starts on a page boundary, suitable for direct I/O with every block size.
///
/// A length that is a multiple of 2 MiB asks for huge pages: one page fault, and one page for direct I/O, instead of
/// 512.
pub struct AlignedBuf {
    /// From `alloc(layout)`, or from `sparse::map(layout)`.
    start: NonNull<u8>,
    len_bytes: usize,
    layout: Layout,
    backing: Backing,
}

// SAFETY: an `AlignedBuf` owns its memory exclusively, like a `Vec<u8>`; bytes have no thread affinity.
unsafe impl Send for AlignedBuf {}
// SAFETY: safe code only reads through `&AlignedBuf` (`Deref`). `AppendBuffer` writes through `start()` under its own
// rules and proves them there.
unsafe impl Sync for AlignedBuf {}

impl AlignedBuf {
    /// A buffer of `len_bytes` zeroes, backed by whole pages.
    ///
    /// # Panics
    /// If `len_bytes` is over `isize::MAX` less a page.
    pub fn new(len_bytes: usize) -> Self {
        let is_huge = len_bytes > 0 && len_bytes.is_multiple_of(HUGE_BYTES);
        let align = if is_huge { HUGE_BYTES } else { PAGE_BYTES };
        let layout = layout(len_bytes, align);
        // SAFETY: the layout's size is at least a page, so not zero.
        let start = unsafe { alloc(layout) };
        let Some(start) = NonNull::new(start) else {
            handle_alloc_error(layout)
        };
        if is_huge {
            want_huge_pages(start, layout.size());
        }
        // Zeroed here and not by the allocator, because the advice must come before the first access.
        // SAFETY: `start` is valid for writes of `layout.size()` bytes, as the allocator gave it.
        unsafe { start.as_ptr().write_bytes(0, layout.size()) };
        Self {
            start,
            len_bytes,
            layout,
            backing: Backing::Ahead,
        }
    }

    /// Like [`new`](Self::new), with memory of `backing`. Sparse memory is mapped for this buffer and unmapped with it.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub fn with_backing(len_bytes: usize, backing: Backing) -> Self {
        if backing == Backing::Ahead {
            return Self::new(len_bytes);
        }
        let layout = layout(len_bytes, PAGE_BYTES);
        let Some(start) = sparse::map(layout) else {
            handle_alloc_error(layout)
        };
        Self {
            start,
            len_bytes,
            layout,
            backing,
        }
    }

    /// Pointer to the first byte. Valid for reads and writes of `len()` bytes while the buffer lives. No reference is
    /// made, so disjoint parts can be borrowed independently.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }
}

/// A layout of whole pages for `len_bytes`; at least one page, as a layout of size 0 must not be allocated.
fn layout(len_bytes: usize, align: usize) -> Layout {
    // Checked: an unchecked rounding would turn a length near `usize::MAX` into 0.
    let layout = len_bytes
        .max(1)
        .checked_next_multiple_of(PAGE_BYTES)
        .and_then(|rounded| Layout::from_size_align(rounded, align).ok());
    layout.unwrap_or_else(|| panic!("a buffer of {len_bytes} bytes exceeds the address space"))
}

/// Memory in a mapping of its own.
#[cfg(all(target_os = "linux", not(any(miri, feature = "portable"))))]
mod sparse {
    use super::*;
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

    /// Zeroed pages for `layout`, not shared with anybody; `None` if the system has no room for them.
    pub(super) fn map(layout: Layout) -> Option<NonNull<u8>> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: with a null hint and no MAP_FIXED the kernel picks a range that nothing uses.
        let mapped =
            unsafe { mmap_anonymous(std::ptr::null_mut(), layout.size(), protection, flags) };
        NonNull::new(mapped.ok()?.cast())
    }

    /// # Safety
    /// `map` returned `start` for this layout, and nobody uses the memory any more.
    pub(super) unsafe fn unmap(start: NonNull<u8>, layout: Layout) {
        // SAFETY: the range is exactly what `mmap` returned, and the caller promises that it is unmapped once.
        let unmapped = unsafe { munmap(start.as_ptr().cast(), layout.size()) };
        debug_assert!(unmapped.is_ok(), "munmap of an own range");
    }
}

/// Without `mmap` the heap is used.
#[cfg(not(all(target_os = "linux", not(any(miri, feature = "portable")))))]
mod sparse {
    use super::*;

    pub(super) fn map(layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: the layout's size is at least a page, so not zero.
        NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) })
    }

    /// # Safety
    /// `map` returned `start` for this layout, and nobody uses the memory any more.
    pub(super) unsafe fn unmap(start: NonNull<u8>, layout: Layout) {
        // SAFETY: from `alloc_zeroed` with this layout, freed once, as the caller promises.
        unsafe { dealloc(start.as_ptr(), layout) }
    }
}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        match self.backing {
            // SAFETY: `start` came from `alloc(self.layout)` and is freed once, here.
            Backing::Ahead => unsafe { dealloc(self.start.as_ptr(), self.layout) },
            // SAFETY: `start` came from `sparse::map(self.layout)` and is given back once, here, by its only owner.
            Backing::Sparse => unsafe { sparse::unmap(self.start, self.layout) },
        }
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `start` is valid for `len_bytes` initialised (zeroed) bytes; `&self` keeps the
        // memory alive and, as nothing safe writes through `&self`, unchanged.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len_bytes) }
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` makes this the only access.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len_bytes) }
    }
}

impl Clone for AlignedBuf {
    fn clone(&self) -> Self {
        let mut copy = Self::with_backing(self.len_bytes, self.backing);
        copy.copy_from_slice(self);
        copy
    }
}

impl fmt::Debug for AlignedBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlignedBuf({} bytes)", self.len_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zeroed_and_page_aligned() {
        let long = if cfg!(miri) { 3 << 13 } else { 3 << 20 };
        for backing in [Backing::Ahead, Backing::Sparse] {
            for len_bytes in [0, 1, 512, 4096, 4097, long] {
                let buf = AlignedBuf::with_backing(len_bytes, backing);
                assert_eq!(buf.len(), len_bytes);
                assert!(buf.as_ptr().addr().is_multiple_of(PAGE_BYTES));
                assert!(buf.iter().all(|&byte| byte == 0));
            }
        }
    }

    #[test]
    fn memory_that_comes_back_is_zeroed_too() {
        for backing in [Backing::Ahead, Backing::Sparse] {
            for _ in 0..3 {
                let mut buf = AlignedBuf::with_backing(256 << 10, backing);
                assert!(buf.iter().all(|&byte| byte == 0));
                buf.fill(7);
            }
        }
    }

    #[test]
    fn a_length_beyond_the_address_space_is_refused() {
        for len_bytes in [usize::MAX, usize::MAX - 4095, isize::MAX as usize] {
            let made = std::panic::catch_unwind(|| AlignedBuf::new(len_bytes).len());
            let refusal = made.expect_err("no machine has so much memory");
            let text = refusal.downcast_ref::<String>().expect("a message");
            assert!(text.contains("exceeds the address space"), "{text}");
        }
    }

    #[test]
    fn a_clone_is_its_own_memory() {
        for backing in [Backing::Ahead, Backing::Sparse] {
            let mut first = AlignedBuf::with_backing(600, backing);
            first.fill(7);
            let second = first.clone();
            first.fill(8);
            assert!(second.iter().all(|&byte| byte == 7));
        }
    }
}
