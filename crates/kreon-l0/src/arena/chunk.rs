//! One chunk of memory from the kernel.

use std::ptr::NonNull;

/// Size and alignment of a chunk in bytes.
pub(super) const CHUNK_BYTES: usize = 2 << 20;

/// Exclusively owned memory of [`CHUNK_BYTES`], freed on drop.
pub(super) struct Chunk(NonNull<u8>);

// SAFETY: the memory belongs to this value alone and has no thread affinity; `Chunk` itself accesses none of its bytes.
unsafe impl Send for Chunk {}

impl Chunk {
    /// Memory that is backed page by page of 4 KiB at the first access. Huge pages lost: their first access cost 100 ns
    /// more for each key (335 to 396 ns an insert against 299), gets were no faster at a million keys, and the writer
    /// that touches a page first waits for all of it.
    ///
    /// If the system has no more memory, the process ends, as with any allocation.
    pub(super) fn new() -> Self {
        match memory::map() {
            Some(start) => Self(start),
            None => std::alloc::handle_alloc_error(memory::LAYOUT),
        }
    }

    /// Gives up ownership of the memory, until [`Self::from_start`] takes it back.
    pub(super) fn into_start(self) -> NonNull<u8> {
        let start = self.0;
        std::mem::forget(self);
        start
    }

    /// Takes back memory from [`Self::into_start`].
    ///
    /// # Safety
    /// `start` came from [`Self::into_start`], is taken back once, and nobody refers to the memory any more.
    pub(super) unsafe fn from_start(start: NonNull<u8>) -> Self {
        Self(start)
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: `map` returned it; it is unmapped once, by its only owner.
        unsafe { memory::unmap(self.0) };
    }
}

#[cfg(not(any(miri, loom)))]
mod memory {
    use std::alloc::Layout;
    use std::ffi::c_void;
    use std::ptr::{self, NonNull};

    #[cfg(target_os = "linux")]
    use rustix::mm::{Advice, madvise};
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

    use super::CHUNK_BYTES;

    /// The layout named in the message about missing memory.
    pub(super) const LAYOUT: Layout = Layout::new::<[u8; CHUNK_BYTES]>();

    pub(super) fn map() -> Option<NonNull<u8>> {
        // Maps twice the size, which contains an aligned chunk.
        let mapped = map_anywhere(2 * CHUNK_BYTES)?;
        let skip = mapped.align_offset(CHUNK_BYTES);
        let start = mapped.wrapping_add(skip);
        if skip > 0 {
            // SAFETY: the part of the fresh mapping before the chunk, to which nobody refers.
            unsafe { give_back(mapped, skip) };
        }
        let behind = start.wrapping_add(CHUNK_BYTES);
        // SAFETY: the part behind the chunk; `skip` is less than the length of a chunk, so it is not empty.
        unsafe { give_back(behind, CHUNK_BYTES - skip) };
        #[cfg(target_os = "linux")]
        // SAFETY: the chunk just mapped; this advice does not change content.
        let _ = unsafe { madvise(start.cast::<c_void>(), CHUNK_BYTES, Advice::LinuxNoHugepage) };
        NonNull::new(start)
    }

    /// # Safety
    /// `start` came from [`map`], is unmapped once, and nobody refers to the memory any more.
    pub(super) unsafe fn unmap(start: NonNull<u8>) {
        // SAFETY: as the caller promises.
        unsafe { give_back(start.as_ptr(), CHUNK_BYTES) };
    }

    fn map_anywhere(bytes: usize) -> Option<*mut u8> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: with a null hint and no MAP_FIXED the kernel picks a range that nothing uses.
        let mapped =
            unsafe { mmap_anonymous(ptr::null_mut(), bytes, protection, MapFlags::PRIVATE) };
        mapped.ok().map(<*mut c_void>::cast)
    }

    /// # Safety
    /// The range consists of whole pages that [`map_anywhere`] mapped, and nobody refers to it any more.
    unsafe fn give_back(start: *mut u8, bytes: usize) {
        // SAFETY: as the caller promises.
        let unmapped = unsafe { munmap(start.cast::<c_void>(), bytes) };
        debug_assert!(unmapped.is_ok(), "munmap of an own range");
    }
}

/// Miri and loom have no `mmap`, so the heap is used.
#[cfg(any(miri, loom))]
mod memory {
    use std::alloc::{Layout, alloc, dealloc};
    use std::ptr::NonNull;

    use super::CHUNK_BYTES;

    pub(super) const LAYOUT: Layout = match Layout::from_size_align(CHUNK_BYTES, 64) {
        Ok(layout) => layout,
        Err(_) => panic!("the layout of a chunk is valid"),
    };

    pub(super) fn map() -> Option<NonNull<u8>> {
        // SAFETY: the layout's size is not zero.
        NonNull::new(unsafe { alloc(LAYOUT) })
    }

    /// # Safety
    /// `start` came from [`map`], is freed once, and nobody refers to the memory any more.
    pub(super) unsafe fn unmap(start: NonNull<u8>) {
        // SAFETY: `map` got it from `alloc` with this layout; the caller promises the rest.
        unsafe { dealloc(start.as_ptr(), LAYOUT) };
    }
}
