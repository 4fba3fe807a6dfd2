//! The other way to read: through the kernel's own mapping of the volume, `mmap`, for comparison (`Kreon 4.2.2`,
//! `FastMap 4.4`).
//!
//! Only dirty pages have frames then, an eighth of the memory; the rest is left to the page cache, and the
//! kernel decides what stays in it. A page is in a frame from [`fresh`](Mapping::fresh) until it was written and
//! its frame is wanted; readers look there first. The kernel's page is as new as the last write that has returned.
//!
//! Readers get copies. Pages that a store reaches do not change, so a reference would mostly do no harm; but that
//! they are not used anew meanwhile is a promise of the crates above, the tail of the log does change, and other
//! processes may write to a file: nothing that safe code could be given a `&[u8]` on.
//!
//! A page is verified when it is read for the first time. What the kernel reads again later, it does not tell.

use std::mem::MaybeUninit;
use std::sync::Arc;

use kreon_base::{Error, PAGE_BYTES, PageBytes, PageNo, Priority, Result};
use kreon_device::{Device, FileMap, MapAdvice};

use crate::bytes::{pages_of, part_of};
use crate::mapping::Mapping;
use crate::options::{Backend, MappingOptions, PageRequest};
use crate::stats::ThreadCounters;
use crate::well::{PageBits, thread_number};

/// The share of the memory that frames get, for dirty pages.
const FRAMES_SHARE: usize = 8;

/// The least that they get, in bytes, if there is as much.
const FRAMES_BYTES_MIN: usize = 1 << 20;

/// Of the memory of a mapping, what is for frames.
pub(crate) fn frame_memory_bytes(memory_bytes: usize) -> usize {
    (memory_bytes / FRAMES_SHARE).max(memory_bytes.min(FRAMES_BYTES_MIN))
}

/// See the module's text.
pub(crate) struct Mapped {
    map: FileMap,
    asks: bool,
    /// Pages that were verified since their content is new.
    verified: PageBits,
    reads: ThreadCounters,
}

impl Mapped {
    /// What a mapping of `device` needs to read through `mmap`; `None` if it is not to.
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
            asks: advice == MapAdvice::WillNeed,
            verified: PageBits::new(pages)?,
            reads: ThreadCounters::default(),
        }))
    }

    /// Pages that were read.
    pub(crate) fn reads(&self) -> u64 {
        self.reads.sum()
    }

    /// Pages get new content: they must be verified again.
    pub(crate) fn forget(&self, first: PageNo, pages: u64) {
        self.verified.clear(first, pages);
    }

    /// Verifies a page that was not verified before.
    fn check(&self, request: &PageRequest<'_>, bytes: &PageBytes) -> Result<()> {
        if !self.verified.has(request.page) {
            (request.check)(bytes)?;
            self.verified.set(request.page);
        }
        Ok(())
    }

    /// Has the kernel begin to read pages, if it is to be asked.
    pub(crate) fn will_need(&self, requests: &[PageRequest<'_>]) {
        if !self.asks {
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

impl Mapping {
    /// Lends a copy of a page that no frame holds.
    pub(crate) fn read_mapped<R>(
        &self,
        mapped: &Mapped,
        request: PageRequest<'_>,
        use_page: impl FnOnce(&PageBytes) -> R,
    ) -> Result<R> {
        // It has a frame, but the thread no cell left.
        if let Some(copy) = self.pages.space.copy(request.page) {
            return Ok(use_page(&copy));
        }
        let mut buffer = MaybeUninit::uninit();
        let offset = request.page.offset_bytes();
        let Some(bytes) = mapped.map.copy_page(offset, &mut buffer) else {
            return self.read_past(request, use_page);
        };
        mapped.reads.add(thread_number(), request.priority);
        mapped.check(&request, bytes)?;
        Ok(use_page(bytes))
    }

    /// Copies bytes that do not keep to pages: from frames where there are some.
    pub(crate) fn copy_mapped(
        &self,
        mapped: &Mapped,
        offset_bytes: u64,
        priority: Priority,
        into: &mut [u8],
    ) -> Result<()> {
        for page in pages_of(offset_bytes, into.len()) {
            let (part, within) = part_of(into, offset_bytes, page);
            let from_frame = self.read_resident(PageNo(page), priority, |bytes| {
                part.copy_from_slice(&bytes[within..within + part.len()]);
            });
            if from_frame.is_some() {
                continue;
            }
            let offset = PageNo(page).offset_bytes() + within as u64;
            if mapped.map.copy(offset, part) {
                mapped.reads.add(thread_number(), priority);
                continue;
            }
            let request = PageRequest {
                page: PageNo(page),
                priority,
                check: &|_| Ok(()),
            };
            self.read_past(request, |bytes| {
                part.copy_from_slice(&bytes[within..within + part.len()]);
            })?;
        }
        Ok(())
    }
}
