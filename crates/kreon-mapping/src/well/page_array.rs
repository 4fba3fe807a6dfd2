//! The page array: one entry of 32 bits for each page that the volume may ever have.

use kreon_base::sync::AtomicU32;
use kreon_base::{PAGE_BYTES, PageNo, Result};

use super::memory::KernelMemory;

/// Pages whose entries share one page of the array: a *stripe*. It is the unit in which the array
/// takes memory and gives it back.
pub(crate) const STRIPE_PAGES: u64 = (PAGE_BYTES / size_of::<u32>()) as u64;

/// The entries of all pages. A stripe whose entries were never set costs address space only.
pub(super) struct PageArray {
    memory: KernelMemory,
    pages: u64,
    /// Models keep the entries here: theirs are not plain words.
    #[cfg(loom)]
    modelled: Box<[AtomicU32]>,
}

impl PageArray {
    /// An array for pages 0 to `pages - 1`, all absent. The caller has checked that the array's size
    /// in bytes fits in an `isize`.
    pub fn new(pages: u64) -> Result<Self> {
        let stripes = pages.div_ceil(STRIPE_PAGES);
        let memory = KernelMemory::sparse(stripes as usize * PAGE_BYTES)?;
        Ok(Self {
            memory,
            pages,
            #[cfg(loom)]
            modelled: (0..pages).map(|_| AtomicU32::new(0)).collect(),
        })
    }

    /// The first entry.
    #[cfg(not(loom))]
    #[inline]
    fn entries(&self) -> *const AtomicU32 {
        self.memory.start().cast::<AtomicU32>().as_ptr()
    }

    #[cfg(loom)]
    fn entries(&self) -> *const AtomicU32 {
        self.modelled.as_ptr()
    }

    /// The entry of a page; `None` if the volume can never have the page.
    #[inline]
    pub fn entry(&self, page: PageNo) -> Option<&AtomicU32> {
        if page.0 >= self.pages {
            return None;
        }
        let entry = self.entries().wrapping_add(page.0 as usize);
        // SAFETY: `page` is below `pages`, so the address is an aligned word of our mapping, which is
        // zero until set, a valid atomic, and accessed as an atomic only. It lives as long as `self`.
        Some(unsafe { &*entry })
    }

    /// The first page of a stripe and the entries of the stripe's pages.
    pub fn stripe(&self, stripe: u64) -> (PageNo, &[AtomicU32]) {
        let first = (stripe * STRIPE_PAGES).min(self.pages);
        let len = STRIPE_PAGES.min(self.pages - first) as usize;
        let start = self.entries().wrapping_add(first as usize);
        // SAFETY: the range ends at or before `pages`; the rest as in `entry`.
        let entries = unsafe { std::slice::from_raw_parts(start, len) };
        (PageNo(first), entries)
    }

    /// Gives back the memory of a stripe whose pages are all absent. (Were one present, its entry
    /// would read as absent from now on: its frame would be lost, but no memory would be misused.)
    pub fn release(&self, stripe: u64) {
        let start = stripe as usize * PAGE_BYTES;
        self.memory.forget_range(start..start + PAGE_BYTES);
    }
}
