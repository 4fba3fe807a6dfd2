//! Reading through the kernel's mapping of the volume, `mmap`, for comparison (`Kreon 4.2.2`, `FastMap 4.4`).
//!
//! In this mode only dirty pages have frames, in an eighth of the memory. The rest is left to the page cache, and the
//! kernel decides which pages stay in it. A page is in a frame from [`fresh`](crate::Mapping::fresh) until it was
//! written and its frame is needed; readers look there first. The kernel's page is as new as the last write that has
//! returned.
//!
//! Readers get copies, because safe code may not have a `&[u8]` of bytes that can change: the crates above promise that
//! reachable pages are not reused, but the tail of the log does change, and other processes may write to the file.
//!
//! A page is verified when it is read for the first time, and not when the kernel reads it again.

use std::mem::MaybeUninit;
use std::sync::Arc;

use kreon_base::{Error, PAGE_BYTES, PageBytes, PageNo, Priority, Result};
use kreon_device::{Device, FileMap, MapAdvice};

use crate::counters::ThreadCounters;
use crate::modes::Backend;
use crate::options::{MappingOptions, PageRequest};
use crate::well::{VolumeBits, thread_number};

/// Frames get this share of the memory, for dirty pages.
const FRAMES_SHARE: usize = 8;

/// The least that frames get, in bytes, if there is as much.
const FRAMES_BYTES_MIN: usize = 1 << 20;

/// The kernel's mapping, and the pages that were verified in it.
pub(crate) struct Mapped {
    map: FileMap,
    /// Whether prefetches are passed on as advice.
    advises: bool,
    /// Pages that were verified since their content is new.
    verified: VolumeBits,
    reads: ThreadCounters,
}

impl Mapped {
    /// The kernel's mapping of `device`; `None` in the mode that reads frames.
    pub(crate) fn new(device: &Arc<dyn Device>, options: &MappingOptions) -> Result<Option<Self>> {
        let Backend::Mmap(advice) = options.modes.backend else {
            return Ok(None);
        };
        let Some(map) = device.map(options.volume_bytes_max, advice)? else {
            return Err(Error::invalid(
                "a device with direct I/O cannot be read through mmap",
            ));
        };
        let pages = options.volume_bytes_max / PAGE_BYTES as u64;
        Ok(Some(Self {
            map,
            advises: advice == MapAdvice::WillNeed,
            verified: VolumeBits::new(pages)?,
            reads: ThreadCounters::default(),
        }))
    }

    /// The memory that frames and their tables get: all, if they are read.
    pub(crate) fn frame_memory_bytes(options: &MappingOptions) -> usize {
        let all = options.memory_bytes;
        match options.modes.backend {
            Backend::Pool => all,
            Backend::Mmap(_) => (all / FRAMES_SHARE).max(all.min(FRAMES_BYTES_MIN)),
        }
    }

    pub(crate) fn reads(&self) -> u64 {
        self.reads.sum()
    }

    /// Pages get new content and must be verified again.
    pub(crate) fn forget(&self, first: PageNo, pages: u64) {
        self.verified.clear(first, pages);
    }

    /// Memory for [`copy_page`](Self::copy_page).
    pub(super) fn page_buffer() -> MaybeUninit<PageBytes> {
        MaybeUninit::uninit()
    }

    /// Copies a page into `buffer` and verifies it. `None` if the kernel's mapping does not have it.
    pub(super) fn copy_page<'b>(
        &self,
        request: &PageRequest<'_>,
        buffer: &'b mut MaybeUninit<PageBytes>,
    ) -> Option<Result<&'b PageBytes>> {
        let offset = request.page.offset_bytes();
        let bytes = self.map.copy_page(offset, buffer)?;
        self.reads.add(thread_number(), request.priority);
        Some(self.check(request, bytes).map(|()| &*bytes))
    }

    /// Copies bytes of one page. False if the kernel's mapping does not have them.
    pub(super) fn copy(&self, offset_bytes: u64, priority: Priority, into: &mut [u8]) -> bool {
        let is_copied = self.map.copy(offset_bytes, into);
        if is_copied {
            self.reads.add(thread_number(), priority);
        }
        is_copied
    }

    /// Verifies a page that was not verified before.
    fn check(&self, request: &PageRequest<'_>, bytes: &PageBytes) -> Result<()> {
        if !self.verified.has(request.page) {
            (request.check)(bytes)?;
            self.verified.set(request.page);
        }
        Ok(())
    }

    /// Has the kernel begin to read pages, if prefetches are passed on.
    pub(crate) fn will_need(&self, requests: &[PageRequest<'_>]) {
        if !self.advises {
            return;
        }
        let mut pages: Vec<u64> = requests.iter().map(|request| request.page.0).collect();
        pages.sort_unstable();
        pages.dedup();
        for run in pages.chunk_by(|one, next| one + 1 == *next) {
            if let [first, ..] = run {
                let offset = PageNo(*first).offset_bytes();
                self.map.will_need(offset, run.len() * PAGE_BYTES);
            }
        }
    }
}
