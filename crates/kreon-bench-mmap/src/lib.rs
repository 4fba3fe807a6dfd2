//! A file mapped by the kernel, shared and writable: what the benchmark compares the mapping of kreon with.
//!
//! The kernel and other processes may change the bytes at any time, so there are no references to them: words are loaded
//! and stored atomically. A device error ends the process (`SIGBUS`).

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

/// Bytes of a page.
const PAGE_BYTES: usize = 4096;

/// Words of a page.
const PAGE_WORDS: usize = PAGE_BYTES / size_of::<u64>();

/// Pages of a file, mapped without readahead.
pub struct FilePages {
    start: NonNull<c_void>,
    pages: usize,
}

// SAFETY: the mapping belongs to no thread and is unmapped once, by `drop`.
unsafe impl Send for FilePages {}
// SAFETY: as above; through `&FilePages` the words are only used atomically.
unsafe impl Sync for FilePages {}

impl FilePages {
    /// Maps the first `pages` pages of a file that is at least so long, and open for reading and writing.
    ///
    /// # Errors
    /// If the system does not map it.
    pub fn new(file: &File, pages: usize) -> io::Result<Self> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        let len_bytes = pages * PAGE_BYTES;
        // SAFETY: no address is asked for, so that no other mapping is replaced.
        let start = unsafe { mmap(std::ptr::null_mut(), len_bytes, protection, flags, file, 0) }?;
        let start = NonNull::new(start).ok_or_else(|| io::Error::other("a mapping at 0"))?;
        let mapped = Self { start, pages };
        // SAFETY: the range is our mapping, and this advice changes no byte of it.
        unsafe { madvise(start.as_ptr(), len_bytes, Advice::Random) }?;
        Ok(mapped)
    }

    /// The first word of a page.
    pub fn first_word(&self, page: usize) -> u64 {
        self.word(page * PAGE_WORDS).load(Relaxed)
    }

    /// Changes the first word of a page, and nothing else of it.
    pub fn set_first_word(&self, page: usize, word: u64) {
        self.word(page * PAGE_WORDS).store(word, Relaxed);
    }

    fn word(&self, number: usize) -> &AtomicU64 {
        assert!(number < self.pages * PAGE_WORDS, "outside the mapping");
        let word = self.start.cast::<u64>().as_ptr().wrapping_add(number);
        // SAFETY: the word lies in the mapping, which lives as long as `self`, starts at a page, and is used by atomic
        // loads and stores only.
        unsafe { AtomicU64::from_ptr(word) }
    }
}

impl Drop for FilePages {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no word of it outlives `self`.
        let unmapped = unsafe { munmap(self.start.as_ptr(), self.pages * PAGE_BYTES) };
        debug_assert!(unmapped.is_ok(), "a mapping is unmapped once");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_word_is_in_the_file_and_no_other() {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(3 * PAGE_BYTES as u64).expect("a length");
        let pages = FilePages::new(&file, 3).expect("a mapping");
        pages.set_first_word(1, 77);
        assert_eq!(
            [0, 1, 2].map(|page| pages.first_word(page)),
            [0, 77, 0],
            "words of the pages"
        );
        let mut bytes = vec![0; 3 * PAGE_BYTES];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, 0).expect("a read");
        let set = bytes.iter().position(|byte| *byte == 77);
        assert_eq!(set, Some(PAGE_BYTES));
        assert_eq!(bytes.iter().filter(|byte| **byte != 0).count(), 1);
    }

    #[test]
    #[should_panic(expected = "outside the mapping")]
    fn a_page_behind_the_end_is_refused() {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(PAGE_BYTES as u64).expect("a length");
        let pages = FilePages::new(&file, 1).expect("a mapping");
        pages.first_word(1);
    }
}
