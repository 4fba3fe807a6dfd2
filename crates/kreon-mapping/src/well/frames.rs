//! The frames' memory, and the tokens that give the right to a frame.

use std::ptr::NonNull;

use kreon_base::sync::Watch;
use kreon_base::{PAGE_BYTES, PageBytes, PageNo, Result};
use kreon_device::Backing;

use super::memory::KernelMemory;

/// The bytes of all frames.
pub(super) struct Frames {
    memory: KernelMemory,
    count: u32,
    /// Pieces are frames.
    watch: Watch,
}

/// The exclusive right to a frame that no page has.
#[derive(Debug)]
pub(crate) struct FreeFrame {
    number: u32,
}

/// A frame that was taken from its page. Readers that had pinned it before may still use it.
#[derive(Debug)]
pub(crate) struct RetiredFrame {
    pub(super) number: u32,
    /// The page that it held.
    pub(super) page: PageNo,
}

impl Frames {
    /// Room for `count` frames; all of it is there from the start unless `backing` is sparse.
    pub fn new(count: u32, huge_pages: bool, backing: Backing) -> Result<Self> {
        let len_bytes = count as usize * PAGE_BYTES;
        let memory = match backing {
            Backing::Ahead => KernelMemory::populated(len_bytes, huge_pages)?,
            Backing::Sparse => KernelMemory::sparse(len_bytes)?,
        };
        Ok(Self {
            memory,
            count,
            watch: Watch::new(),
        })
    }

    /// Where frame `number` is.
    #[inline]
    pub fn address(&self, number: u32) -> NonNull<PageBytes> {
        debug_assert!(number < self.count);
        let start = self.memory.start().cast::<PageBytes>().as_ptr();
        // SAFETY: `start` is not null and numbers are below `count`, so the sum stays in the mapping,
        // which does not wrap around the address space.
        unsafe { NonNull::new_unchecked(start.wrapping_add(number as usize)) }
    }

    /// The bytes of a free frame.
    pub fn bytes<'a>(&'a self, frame: &'a FreeFrame) -> &'a PageBytes {
        self.watch.read(frame.number.into());
        let address = self.address(frame.number);
        // SAFETY: the address is a whole page of our mapping, zeroed or written since. The token makes
        // us the only one to touch it, and it is borrowed for as long as the reference lives.
        unsafe { address.as_ref() }
    }

    /// The bytes of a free frame, to be filled.
    pub fn bytes_mut<'a>(&'a self, frame: &'a mut FreeFrame) -> &'a mut PageBytes {
        self.watch.write(frame.number.into());
        let mut address = self.address(frame.number);
        // SAFETY: as in `bytes`, and the token is borrowed exclusively.
        unsafe { address.as_mut() }
    }

    /// The bytes of a published frame.
    ///
    /// # Safety
    /// Frame `number` was published before in the order of this thread, and cannot become free while
    /// the reference lives: because it is pinned, or because its page is being written.
    #[inline]
    pub unsafe fn published(&self, number: u32) -> &PageBytes {
        self.watch.read(number.into());
        let address = self.address(number);
        // SAFETY: a whole page of our mapping. Nobody writes to it: only the holder of its free token
        // may, and the caller promises that there is none.
        unsafe { address.as_ref() }
    }
}

impl FreeFrame {
    /// The token of frame `number`.
    ///
    /// # Safety
    /// There is no other token of this frame, no entry of the page array stands for it, and no reader uses it.
    pub(super) const unsafe fn claim(number: u32) -> Self {
        Self { number }
    }

    pub(super) const fn number(&self) -> u32 {
        self.number
    }
}
