//! One chunk of memory, from the kernel.

use std::ptr::NonNull;

/// Bytes of a chunk, and what it is aligned to.
pub(super) const CHUNK_BYTES: usize = 2 << 20;

/// Memory of [`CHUNK_BYTES`], freed when dropped. Nobody else knows of it.
pub(super) struct Chunk(NonNull<u8>);

// SAFETY: the memory belongs to this value alone and has no thread affinity; `Chunk` itself touches no
// byte of it.
unsafe impl Send for Chunk {}

impl Chunk {
    /// Memory that takes room only where it was touched, 4 KiB at a time. Huge pages lost: their first touch
    /// cost 100 ns more for each key (335 to 396 ns an insert against 299), gets were no faster at a million
    /// keys, and the one writer who touches a page waits for all of it.
    ///
    /// Where the system has no more memory the process ends, as with any allocation.
    pub(super) fn new() -> Self {
        match memory::map() {
            Some(start) => Self(start),
            None => std::alloc::handle_alloc_error(memory::LAYOUT),
        }
    }

    /// Gives up the memory, for [`Self::from_start`] to take it back.
    pub(super) fn into_start(self) -> NonNull<u8> {
        let start = self.0;
        std::mem::forget(self);
        start
    }

    /// Takes back what [`Self::into_start`] gave.
    ///
    /// # Safety
    /// It did, it is taken back once, and nobody refers to the memory any more.
    pub(super) unsafe fn from_start(start: NonNull<u8>) -> Self {
        Self(start)
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: `map` gave it; it goes once, with its only owner.
        unsafe { memory::unmap(self.0) };
    }
}

#[cfg(not(any(miri, loom)))]
mod memory {
    use std::alloc::Layout;
    use std::ffi::c_void;
    use std::ptr::{self, NonNull};

    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

    use super::CHUNK_BYTES;

    /// As the message about missing memory names it.
    pub(super) const LAYOUT: Layout = Layout::new::<[u8; CHUNK_BYTES]>();

    pub(super) fn map() -> Option<NonNull<u8>> {
        // Twice as much as needed, so that an aligned chunk is in it.
        let mapped = map_anywhere(2 * CHUNK_BYTES)?;
        let skip = mapped.align_offset(CHUNK_BYTES);
        let start = mapped.wrapping_add(skip);
        if skip > 0 {
            // SAFETY: the part of the fresh mapping before the chunk, of which nobody knows.
            unsafe { give_back(mapped, skip) };
        }
        let behind = start.wrapping_add(CHUNK_BYTES);
        // SAFETY: the part behind the chunk; `skip` is below a chunk's length, so it is not empty.
        unsafe { give_back(behind, CHUNK_BYTES - skip) };
        // SAFETY: the chunk just mapped, and this advice leaves content alone.
        let _ = unsafe { madvise(start.cast::<c_void>(), CHUNK_BYTES, Advice::LinuxNoHugepage) };
        NonNull::new(start)
    }

    /// # Safety
    /// `start` came from [`map`], it is given back once, and nobody refers to the memory any more.
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
    /// The range is one of whole pages that [`map_anywhere`] mapped, and nobody refers to it any more.
    unsafe fn give_back(start: *mut u8, bytes: usize) {
        // SAFETY: as the caller promises.
        let unmapped = unsafe { munmap(start.cast::<c_void>(), bytes) };
        debug_assert!(unmapped.is_ok(), "munmap of an own range");
    }
}

/// Miri and loom's models know no `mmap`: the heap stands in for it.
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
    /// `start` came from [`map`], it is given back once, and nobody refers to the memory any more.
    pub(super) unsafe fn unmap(start: NonNull<u8>) {
        // SAFETY: `map` got it from `alloc` with this layout; the rest as the caller promises.
        unsafe { dealloc(start.as_ptr(), LAYOUT) };
    }
}
