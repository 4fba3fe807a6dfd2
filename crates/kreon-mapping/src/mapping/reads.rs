//! Reads of many pages, of ranges of bytes, of many records, and reads of tasks.

use std::sync::Arc;
use std::task::Waker;

use kreon_base::{PAGE_BYTES, PageNo, Priority, Result};

use super::Mapping;
use crate::async_read::{Begun, PagesWanted};
use crate::options::PageRequest;
use crate::read::{self, ByteCopy, ByteRange, Fetched, FinalBytes};

/// Most bytes of a hint: as many cache lines as a processor fetches at once.
const HINT_BYTES_MAX: usize = 2048;

impl Mapping {
    /// Brings bytes, up to 2 KiB, into the processor's cache if they are resident. To be called a few hundred ns before
    /// they are read.
    #[inline]
    pub fn hint(&self, offset_bytes: u64, len_bytes: usize) {
        let space = self.reader().table().space();
        let page = PageNo::containing(offset_bytes);
        let within = (offset_bytes % PAGE_BYTES as u64) as usize;
        let len_bytes = len_bytes.min(HINT_BYTES_MAX);
        let here = len_bytes.min(PAGE_BYTES - within);
        space.hint(page, within, here);
        if here < len_bytes {
            space.hint(PageNo(page.0 + 1), 0, len_bytes - here);
        }
    }

    /// The same for the first bytes of a page, up to 2 KiB, and its last line.
    #[inline]
    pub fn hint_ends(&self, page: PageNo, first_bytes: usize) {
        let space = self.reader().table().space();
        space.hint_ends(page, first_bytes.min(HINT_BYTES_MAX));
    }

    /// Loads those of the pages that are not resident: sorted, neighbours merged, all at once. Returns when they are
    /// resident. If there are many of them or others need the frames, some may be evicted again by then; reading them
    /// later loads them again.
    ///
    /// # Errors
    /// The first of the device or of a `check`. Pages without error are resident all the same.
    pub fn prefetch(&self, requests: &[PageRequest<'_>]) -> Result<()> {
        read::prefetch(self.reader(), requests)
    }

    /// Copies the bytes from `offset_bytes` on into `into`. Up to 64 KiB, pages that are not resident are brought into
    /// frames, all at once, with this priority; those of longer ranges are read past the frames, through 2 MiB of memory
    /// that is freed on return.
    ///
    /// # Errors
    /// Those of the device; `InvalidArgument` if the range reaches over the longest volume.
    pub fn read_bytes(&self, offset_bytes: u64, priority: Priority, into: &mut [u8]) -> Result<()> {
        let copy = ByteCopy {
            offset_bytes,
            priority,
            into,
        };
        read::read_bytes(self.reader(), copy)
    }

    /// Lends the bytes from `offset_bytes` on to `use_bytes`: from the frame where they lie within
    /// one page, else as a copy in `scratch`, which is overwritten.
    ///
    /// # Errors
    /// As [`read_bytes`](Self::read_bytes).
    pub fn with_bytes<R>(
        &self,
        offset_bytes: u64,
        len_bytes: usize,
        priority: Priority,
        scratch: &mut Vec<u8>,
        use_bytes: impl FnOnce(&[u8]) -> R,
    ) -> Result<R> {
        let range = ByteRange {
            offset_bytes,
            len_bytes,
            priority,
        };
        read::with_bytes(self.reader(), range, scratch, use_bytes)
    }

    /// [`with_bytes`](Self::with_bytes) of a record, whose surroundings are read along while frames are plenty.
    ///
    /// # Errors
    /// As there.
    pub fn with_final_bytes<R>(
        &self,
        bytes: FinalBytes,
        priority: Priority,
        scratch: &mut Vec<u8>,
        use_bytes: impl FnOnce(&[u8]) -> R,
    ) -> Result<R> {
        read::with_final_bytes(self.reader(), bytes, priority, scratch, use_bytes)
    }

    /// Whether [`with_bytes`](Self::with_bytes) of this range would need no read from the device at this moment.
    pub fn has_bytes(&self, offset_bytes: u64, len_bytes: usize) -> bool {
        read::has_bytes(self.reader(), offset_bytes, len_bytes)
    }

    /// Makes these records available: resident ones stay where they are, the others are read at once, into frames while
    /// those are plenty, else into `into`. What `into` had before is removed. A record that cannot be read is left to the
    /// read that needs it.
    ///
    /// # Errors
    /// `InvalidArgument` if a range reaches over the longest volume.
    pub fn fetch(
        &self,
        records: impl Iterator<Item = FinalBytes>,
        priority: Priority,
        into: &mut Fetched,
    ) -> Result<()> {
        read::fetch(self.reader(), records, priority, into)
    }

    /// Begins to load those of the pages that are absent, neighbours as one read. `waker` is called when they are resident,
    /// or when another's load of one of them has ended. Does not wait for the device, except where a dirty page must be
    /// written to get a frame.
    ///
    /// # Errors
    /// `InvalidArgument` if the volume cannot have the pages.
    pub fn begin(self: &Arc<Self>, wanted: &PagesWanted, waker: &Waker) -> Result<Begun> {
        self.reads.begin(|| self.rounds(), wanted, waker)
    }

    /// [`begin`](Self::begin) for bytes of the log: while frames are plenty their pages are loaded, with their
    /// surroundings, else the bytes are read and kept as a record.
    ///
    /// # Errors
    /// `InvalidArgument` if the volume cannot have them.
    pub fn begin_bytes(
        self: &Arc<Self>,
        bytes: &FinalBytes,
        priority: Priority,
        waker: &Waker,
    ) -> Result<Begun> {
        self.reads
            .begin_bytes(|| self.rounds(), bytes, priority, waker)
    }

    /// Runs `future` in this thread, which takes the completions of the reads that the future's parts begin. Any executor
    /// will do for such futures; this one makes the fewest system calls and context switches.
    pub fn drive<F: Future>(self: &Arc<Self>, future: F) -> F::Output {
        self.reads.drive(|| self.rounds(), future)
    }

    /// Waits for all reads that tasks have in flight, and wakes the tasks that wait for them.
    pub fn quiesce(&self) {
        self.reads.quiesce();
    }
}
