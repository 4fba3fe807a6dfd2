//! The frames' memory, and the tokens that give the right to a frame.

use std::ptr::NonNull;

use kreon_base::sync::{AtomicU64, Ordering::Relaxed, Watch};
use kreon_base::{PAGE_BYTES, PageBytes, PageNo, Result, planted};
use kreon_device::Backing;

use super::memory::KernelMemory;

/// The bytes of all frames.
pub(super) struct Frames {
    memory: KernelMemory,
    count: u32,
    /// What readers know of the bytes in each frame, as they please. All zero in a free frame.
    marks: Box<[AtomicU64]>,
    /// Pieces are frames.
    watch: Watch,
}

/// Memory of a frame beside its bytes.
pub(crate) const MARK_BYTES: usize = size_of::<AtomicU64>();

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
            marks: (0..count).map(|_| AtomicU64::new(0)).collect(),
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

    /// The marks of frame `number`. Only who holds its token or a pin on it may use them.
    #[inline]
    pub fn marks(&self, number: u32) -> &AtomicU64 {
        &self.marks[number as usize]
    }

    /// Forgets what was known of the bytes of a frame that nobody uses.
    pub fn clear_marks(&self, frame: &FreeFrame) {
        planted!(MarksOfEarlierPage => return);
        self.marks(frame.number).store(0, Relaxed);
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

    /// The bytes of two published frames, `number` and the one behind it.
    ///
    /// # Safety
    /// As [`published`](Self::published), for both.
    #[inline]
    pub unsafe fn published_pair(&self, number: u32) -> &[u8; 2 * PAGE_BYTES] {
        self.watch.read(number.into());
        self.watch.read(u64::from(number) + 1);
        let pair = self.address(number).cast::<[u8; 2 * PAGE_BYTES]>();
        // SAFETY: two whole pages of our mapping, one behind the other, as the caller promises that there is a frame
        // behind this one. Nobody writes to either: only the holder of its free token may, and there is none.
        unsafe { pair.as_ref() }
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

    pub(crate) const fn number(&self) -> u32 {
        self.number
    }
}
