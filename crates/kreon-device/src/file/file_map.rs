//! A volume mapped by the kernel (`mmap`), for comparison with frames that the store fills itself.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU8, AtomicU64,
    Ordering::{Acquire, Relaxed},
};

use kreon_base::{Error, PAGE_BYTES, PageBytes, Result};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

/// Advice to the kernel about the order of reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MapAdvice {
    /// No advice: readahead as configured for the device.
    Normal,
    /// Random order: one page a fault, no readahead.
    #[default]
    Random,
    /// Ascending order: readahead, and earlier eviction of pages already read.
    Sequential,
    /// As `Random`, with explicit [requests](FileMap::will_need) for pages that will be read soon.
    WillNeed,
}

/// A file mapped for reading.
///
/// The kernel changes the bytes whenever this or another process writes the file, so there are no references to them:
/// callers get copies, made by atomic loads. A copy made during a write may mix old and new words, like a read that
/// overlaps a write.
///
/// A device error ends the process (`SIGBUS`), as the kernel has no other way to report it. This is one reason why a
/// store uses a map only on request.
pub struct FileMap {
    start: NonNull<c_void>,
    mapped_bytes: usize,
    /// Current length of the file, which only grows.
    len_bytes: Arc<AtomicU64>,
}

// SAFETY: the mapping has no thread affinity and is unmapped once, by `drop`.
unsafe impl Send for FileMap {}
// SAFETY: as above; through `&FileMap` the bytes are only read, by atomic loads.
unsafe impl Sync for FileMap {}

impl FileMap {
    /// Maps a file that will not become longer than `len_bytes_max`. Takes only address space. If the file system or a
    /// limit does not allow that length, less is mapped, but at least the current length of the file.
    pub(super) fn new(
        file: &OwnedFd,
        len_bytes: Arc<AtomicU64>,
        len_bytes_max: u64,
        advice: MapAdvice,
    ) -> Result<Self> {
        let present_bytes = len_bytes.load(Acquire).max(PAGE_BYTES as u64);
        let mut mapped_bytes = len_bytes_max.max(present_bytes);
        let start = loop {
            match reserve(file, mapped_bytes) {
                Ok(start) => break start,
                Err(_) if mapped_bytes > present_bytes => {
                    mapped_bytes = (mapped_bytes / 2).max(present_bytes);
                }
                Err(errno) => {
                    return Err(Error::io(format!("map {mapped_bytes} bytes"), errno.into()));
                }
            }
        };
        let map = Self {
            start,
            mapped_bytes: mapped_bytes as usize,
            len_bytes,
        };
        let kernels = match advice {
            MapAdvice::Normal => Advice::Normal,
            MapAdvice::Random | MapAdvice::WillNeed => Advice::Random,
            MapAdvice::Sequential => Advice::Sequential,
        };
        map.advise(0, map.mapped_bytes, kernels);
        Ok(map)
    }

    /// Copies bytes from `offset` on. Returns `false` without effect if the range ends beyond the file or the mapping,
    /// as pages behind the end of a file must not be accessed.
    #[must_use]
    pub fn copy(&self, offset: u64, into: &mut [u8]) -> bool {
        let Some(source) = self.range(offset, into.len()) else {
            return false;
        };
        let ahead = source.align_offset(size_of::<AtomicU64>()).min(into.len());
        let (head, rest) = into.split_at_mut(ahead);
        // SAFETY: the range is mapped and within the file (`range`), and the file never shrinks. Bytes need no
        // alignment. The kernel changes them by plain word stores, which atomic loads may race with; loads of up to 8
        // bytes are allowed on read-only memory.
        let bytes = unsafe { slice::from_raw_parts(source.cast::<AtomicU8>(), ahead) };
        copy_bytes(bytes, head);
        if rest.is_empty() {
            return true;
        }
        let words = rest.len() / size_of::<AtomicU64>();
        let source = source.wrapping_add(ahead);
        // SAFETY: as above; the head ended at a multiple of 8, or `rest` would be empty.
        let loaded = unsafe { slice::from_raw_parts(source.cast::<AtomicU64>(), words) };
        let (middle, tail) = rest.split_at_mut(words * size_of::<AtomicU64>());
        for (into, word) in middle.chunks_exact_mut(size_of::<AtomicU64>()).zip(loaded) {
            into.copy_from_slice(&word.load(Relaxed).to_ne_bytes());
        }
        let source = source.wrapping_add(middle.len());
        // SAFETY: as for the head.
        let bytes = unsafe { slice::from_raw_parts(source.cast::<AtomicU8>(), tail.len()) };
        copy_bytes(bytes, tail);
        true
    }

    /// Copies a page; `None` if it is not mapped.
    #[inline]
    pub fn copy_page<'b>(
        &self,
        offset: u64,
        buffer: &'b mut MaybeUninit<PageBytes>,
    ) -> Option<&'b PageBytes> {
        const WORDS: usize = PAGE_BYTES / size_of::<u64>();
        if !offset.is_multiple_of(PAGE_BYTES as u64) {
            return None;
        }
        let source = self.range(offset, PAGE_BYTES)?.cast::<AtomicU64>();
        // SAFETY: as in `copy`; pages of a mapping are aligned.
        let words = unsafe { slice::from_raw_parts(source, WORDS) };
        let target = buffer.as_mut_ptr().cast::<u8>();
        for (at, word) in words.iter().enumerate() {
            let bytes = word.load(Relaxed).to_ne_bytes();
            let place = target.wrapping_add(at * size_of::<u64>()).cast::<[u8; 8]>();
            // SAFETY: `place` lies within the buffer, to which this function has exclusive access; bytes need no
            // alignment.
            unsafe { place.write(bytes) };
        }
        // SAFETY: all of its words were written above.
        Some(unsafe { buffer.assume_init_ref() })
    }

    /// Has the kernel start reading pages that are not in memory, without waiting for them.
    pub fn will_need(&self, offset: u64, len_bytes: usize) {
        if self.range(offset, len_bytes).is_some() {
            self.advise(offset as usize, len_bytes, Advice::WillNeed);
        }
    }

    /// Address of a range, if it is mapped and within the file.
    #[inline]
    fn range(&self, offset: u64, len_bytes: usize) -> Option<*const u8> {
        let end = offset.checked_add(len_bytes as u64)?;
        let there = end <= self.len_bytes.load(Acquire) && end <= self.mapped_bytes as u64;
        let start = self.start.as_ptr().cast::<u8>().cast_const();
        there.then(|| start.wrapping_add(offset as usize))
    }

    /// Gives advice that affects only cost; a kernel that does not know it may refuse.
    fn advise(&self, offset: usize, len_bytes: usize, advice: Advice) {
        let within = offset % PAGE_BYTES;
        let start = self.start.as_ptr().wrapping_byte_add(offset - within);
        // SAFETY: the range lies in our own mapping, and the advice used in this file does not change content.
        let _ = unsafe { madvise(start, len_bytes + within, advice) };
    }
}

fn copy_bytes(from: &[AtomicU8], into: &mut [u8]) {
    for (into, byte) in into.iter_mut().zip(from) {
        *into = byte.load(Relaxed);
    }
}

fn reserve(file: &OwnedFd, len_bytes: u64) -> Result<NonNull<c_void>, Errno> {
    let len_bytes = usize::try_from(len_bytes).map_err(|_| Errno::OVERFLOW)?;
    let flags = MapFlags::SHARED | MapFlags::NORESERVE;
    // SAFETY: with a null hint and no MAP_FIXED the kernel picks a range that nothing uses.
    let start = unsafe {
        mmap(
            std::ptr::null_mut(),
            len_bytes,
            ProtFlags::READ,
            flags,
            file.as_fd(),
            0,
        )
    }?;
    NonNull::new(start).ok_or(Errno::NOMEM)
}

impl Drop for FileMap {
    fn drop(&mut self) {
        // SAFETY: the range is what `mmap` returned, unmapped once; nothing refers to it any more.
        let _ = unsafe { munmap(self.start.as_ptr(), self.mapped_bytes) };
    }
}
