//! Memory that direct I/O accepts.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use kreon_base::PAGE_BYTES;

/// The processor's next larger page.
const HUGE_BYTES: usize = 2 << 20;

/// Zeroed memory that starts on a page boundary: good for I/O with every block size.
///
/// Whole multiples of 2 MiB ask for huge pages: one page for a first touch and for direct I/O instead of 512.
pub struct AlignedBuf {
    /// From `alloc(layout)`.
    start: NonNull<u8>,
    len_bytes: usize,
    layout: Layout,
}

// SAFETY: an `AlignedBuf` owns its memory alone, as a `Vec<u8>` does; bytes have no thread affinity.
unsafe impl Send for AlignedBuf {}
// SAFETY: through `&AlignedBuf` safe code only reads (`Deref`). `AppendBuffer` writes through
// `start()` under its own rules and proves them there.
unsafe impl Sync for AlignedBuf {}

impl AlignedBuf {
    /// `len_bytes` zeroes. The memory behind is rounded up to whole pages.
    ///
    /// # Panics
    /// If `len_bytes` is over `isize::MAX` less a page.
    pub fn new(len_bytes: usize) -> Self {
        // A layout of size 0 must not be allocated.
        // Checked: rounded up without a look, a length near the end of the numbers becomes 0.
        let is_huge = len_bytes > 0 && len_bytes.is_multiple_of(HUGE_BYTES);
        let align = if is_huge { HUGE_BYTES } else { PAGE_BYTES };
        let layout = len_bytes
            .max(1)
            .checked_next_multiple_of(PAGE_BYTES)
            .and_then(|rounded| Layout::from_size_align(rounded, align).ok());
        let Some(layout) = layout else {
            panic!("a buffer of {len_bytes} bytes exceeds the address space");
        };
        // SAFETY: the layout's size is at least a page, so not zero.
        let start = unsafe { alloc(layout) };
        let Some(start) = NonNull::new(start) else {
            handle_alloc_error(layout)
        };
        if is_huge {
            want_huge_pages(start, layout.size());
        }
        // Zeroed here and not by the allocator: the wish comes before the first touch.
        // SAFETY: `start` is valid for writes of `layout.size()` bytes, as the allocator gave it.
        unsafe { start.as_ptr().write_bytes(0, layout.size()) };
        Self {
            start,
            len_bytes,
            layout,
        }
    }

    /// The first byte. Valid for reads and writes of `len()` bytes while the buffer lives; making no
    /// reference, so that disjoint parts can be borrowed independently.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }
}

/// Asks for huge pages behind memory on a border of one. Where there are none, small ones do.
#[cfg(all(target_os = "linux", not(miri)))]
fn want_huge_pages(start: NonNull<u8>, len_bytes: usize) {
    use rustix::mm::{Advice, madvise};
    // SAFETY: the range is memory that the caller owns, whole pages; the advice changes no byte of it and leaves it
    // mapped as it is.
    let _ = unsafe { madvise(start.as_ptr().cast(), len_bytes, Advice::LinuxHugepage) };
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn want_huge_pages(_: NonNull<u8>, _: usize) {}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        // SAFETY: `start` came from `alloc(self.layout)` and is freed once, here.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
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
        let mut copy = Self::new(self.len_bytes);
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
        for len_bytes in [0, 1, 512, 4096, 4097, long] {
            let buf = AlignedBuf::new(len_bytes);
            assert_eq!(buf.len(), len_bytes);
            assert!(buf.as_ptr().addr().is_multiple_of(PAGE_BYTES));
            assert!(buf.iter().all(|&byte| byte == 0));
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
        let mut first = AlignedBuf::new(600);
        first.fill(7);
        let second = first.clone();
        first.fill(8);
        assert!(second.iter().all(|&byte| byte == 7));
    }
}
