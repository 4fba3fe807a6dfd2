//! A volume as the kernel shows it in memory (`mmap`): for comparison with frames that the store fills itself.

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

/// What the kernel is told about the order of reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MapAdvice {
    /// Nothing: it reads ahead as much as the device's setting says.
    Normal,
    /// None: one page per fault.
    #[default]
    Random,
    /// Ascending: it reads ahead, and forgets what lies behind sooner.
    Sequential,
    /// As `Random`, but what is known to be read soon is [asked for](FileMap::will_need).
    WillNeed,
}

/// A file, mapped for reading and shared with whoever writes it.
///
/// The kernel changes these bytes whenever the file is written, by this process or another, so there are no
/// references to them: whoever wants some gets a copy, made by atomic loads. A copy that is made while the bytes
/// are written may hold old words beside new ones, as a read that overlaps a write does.
///
/// What the device cannot read ends the process (`SIGBUS`): the kernel has no other way to tell, which is
/// one reason why a store does not use this unless it is asked to.
pub struct FileMap {
    start: NonNull<c_void>,
    mapped_bytes: usize,
    /// Present length of the file, which only grows.
    len_bytes: Arc<AtomicU64>,
}

// SAFETY: the mapping has no thread affinity, and is given up once, by `drop`.
unsafe impl Send for FileMap {}
// SAFETY: as above; through `&FileMap` the bytes are only loaded, atomically.
unsafe impl Sync for FileMap {}

impl FileMap {
    /// Maps a file that will not be longer than `len_bytes_max`. Costs address space only. If the file
    /// system or a limit does not allow as much, less is mapped, but never less than the file is long.
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

    /// Copies the bytes from `offset` on. False, and nothing happens, if the file or the mapping ends before:
    /// pages behind the end of a file cannot be touched.
    #[must_use]
    pub fn copy(&self, offset: u64, into: &mut [u8]) -> bool {
        let Some(source) = self.range(offset, into.len()) else {
            return false;
        };
        let ahead = source.align_offset(size_of::<AtomicU64>()).min(into.len());
        let (head, rest) = into.split_at_mut(ahead);
        // SAFETY: the range is mapped and within the file (`range`), which never shrinks. Bytes have no
        // alignment. Others change them at most as the kernel does, by plain stores of words, which atomic
        // loads may meet; loads of up to 8 bytes are fine on memory that cannot be written.
        let bytes = unsafe { slice::from_raw_parts(source.cast::<AtomicU8>(), ahead) };
        copy_bytes(bytes, head);
        if rest.is_empty() {
            return true;
        }
        let words = rest.len() / size_of::<AtomicU64>();
        let source = source.wrapping_add(ahead);
        // SAFETY: as above; the head ended at a multiple of 8, or there would be no rest.
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

    /// Copies a page, or tells that there is none.
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
            // SAFETY: the place lies within the buffer, which is ours alone; bytes have no alignment.
            unsafe { place.write(bytes) };
        }
        // SAFETY: all of its words have been written.
        Some(unsafe { buffer.assume_init_ref() })
    }

    /// Has the kernel begin to read pages that are not in memory, without waiting for them.
    pub fn will_need(&self, offset: u64, len_bytes: usize) {
        if self.range(offset, len_bytes).is_some() {
            self.advise(offset as usize, len_bytes, Advice::WillNeed);
        }
    }

    /// Where a range is, if it is mapped and within the file.
    #[inline]
    fn range(&self, offset: u64, len_bytes: usize) -> Option<*const u8> {
        let end = offset.checked_add(len_bytes as u64)?;
        let there = end <= self.len_bytes.load(Acquire) && end <= self.mapped_bytes as u64;
        let start = self.start.as_ptr().cast::<u8>().cast_const();
        there.then(|| start.wrapping_add(offset as usize))
    }

    /// Advice that changes cost only; a kernel that knows it not may refuse it.
    fn advise(&self, offset: usize, len_bytes: usize, advice: Advice) {
        let within = offset % PAGE_BYTES;
        let start = self.start.as_ptr().wrapping_byte_add(offset - within);
        // SAFETY: the range lies in our own mapping, and the advice given in this file leaves content alone.
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
        // SAFETY: the range is what `mmap` gave, given back once; nothing refers to it any more.
        let _ = unsafe { munmap(self.start.as_ptr(), self.mapped_bytes) };
    }
}
