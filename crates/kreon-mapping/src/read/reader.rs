//! Reading one page: from its frame, else from the device into a frame, else past the frames.
//!
//! A page is checked once, when it comes from the device and before any reader sees it.

use std::sync::Arc;

use kreon_base::{Error, PAGE_BYTES, PageBytes, PageNo, Priority, Result};
use kreon_device::{AlignedBuf, Device};

use super::Mapped;
use super::load::{Begin, Load};
use crate::counters::{ClassCounters, Counter, ThreadCounters};
use crate::evict::Frames;
use crate::modes::MappingModes;
use crate::options::PageRequest;
use crate::table::PageTable;

/// What is counted of reads.
#[derive(Default)]
pub(crate) struct ReadCounters {
    pub hits: ThreadCounters,
    pub misses: ClassCounters,
    pub pages_read: Counter,
    pub pages_read_past: Counter,
}

/// Reads pages of a device through frames.
pub(crate) struct PageReader {
    pub frames: Frames,
    pub device: Arc<dyn Device>,
    /// The kernel's mapping, where that is read instead of frames.
    pub mapped: Option<Mapped>,
    pub modes: MappingModes,
    pub counters: ReadCounters,
}

impl PageReader {
    #[inline]
    pub(crate) fn table(&self) -> &PageTable {
        self.frames.table()
    }

    /// Lends a page to `use_page`. [`Mapping::read`](crate::Mapping::read) has the details.
    #[inline]
    pub(crate) fn read<R>(
        &self,
        request: PageRequest<'_>,
        use_page: impl FnOnce(&PageBytes) -> R,
    ) -> Result<R> {
        match self.table().space().pin(request.page) {
            Some(pinned) => {
                self.counters.hits.add(pinned.thread(), request.priority);
                Ok(use_page(pinned.bytes()))
            }
            None => self.read_missing(request, use_page),
        }
    }

    /// Lends the page if it is resident; never waits.
    pub(crate) fn read_resident<R>(
        &self,
        page: PageNo,
        priority: Priority,
        use_page: impl FnOnce(&PageBytes) -> R,
    ) -> Option<R> {
        if let Some(pinned) = self.table().space().pin(page) {
            self.counters.hits.add(pinned.thread(), priority);
            return Some(use_page(pinned.bytes()));
        }
        self.table().space().copy(page).map(|copy| use_page(&copy))
    }

    /// Lends a page that was not resident: loads it, or waits for the load of another thread, or reads it past the
    /// frames if there is none to be had.
    #[cold]
    fn read_missing<R>(
        &self,
        request: PageRequest<'_>,
        use_page: impl FnOnce(&PageBytes) -> R,
    ) -> Result<R> {
        let (page, table) = (request.page, self.table());
        table.check_page(page)?;
        if let Some(mapped) = &self.mapped {
            return self.read_mapped(mapped, request, use_page);
        }
        self.counters.misses.add(request.priority, 1);
        loop {
            table.wait_loaded(page);
            if let Some(pinned) = table.space().pin(page) {
                return Ok(use_page(pinned.bytes()));
            }
            // Resident, but the thread has no pin left.
            if let Some(copy) = table.space().copy(page) {
                return Ok(use_page(&copy));
            }
            let Some(frame) = self.frames.take() else {
                return self.read_past(request, use_page);
            };
            match Load::begin(table, page, request.priority, frame) {
                Begin::Begun(mut load) => {
                    self.fill(&mut load, request)?;
                    let ended = load.end();
                    table.waiters().wake(page);
                    match ended {
                        Ok(Some(pinned)) => return Ok(use_page(pinned.bytes())),
                        Ok(None) => {}
                        Err(load) => {
                            if let Some(bytes) = load.bytes() {
                                return Ok(use_page(bytes));
                            }
                        }
                    }
                }
                Begin::NotAbsent(frame) => table.pool().put(frame),
                Begin::NoRoom(frame) => {
                    table.pool().put(frame);
                    if !self.frames.make_table_room() {
                        return self.read_past(request, use_page);
                    }
                }
            }
        }
    }

    /// Reads the page of a load and checks it.
    fn fill(&self, load: &mut Load<'_>, request: PageRequest<'_>) -> Result<()> {
        if let Some(bytes) = load.bytes_mut() {
            self.device
                .read_at(request.page.offset_bytes(), bytes.as_mut_slice())?;
            self.counters.pages_read.add(1);
            (request.check)(bytes)?;
        }
        Ok(())
    }

    /// Lends a copy of a page that no frame holds, from the kernel's mapping.
    fn read_mapped<R>(
        &self,
        mapped: &Mapped,
        request: PageRequest<'_>,
        use_page: impl FnOnce(&PageBytes) -> R,
    ) -> Result<R> {
        // Resident, but the thread has no pin left.
        if let Some(copy) = self.table().space().copy(request.page) {
            return Ok(use_page(&copy));
        }
        let mut buffer = Mapped::page_buffer();
        match mapped.copy_page(&request, &mut buffer) {
            Some(bytes) => Ok(use_page(bytes?)),
            None => self.read_past(request, use_page),
        }
    }

    /// Reads a page into memory of its own.
    pub(super) fn read_past<R>(
        &self,
        request: PageRequest<'_>,
        use_page: impl FnOnce(&PageBytes) -> R,
    ) -> Result<R> {
        let mut buffer = AlignedBuf::new(PAGE_BYTES);
        let bytes = whole_page(&mut buffer)?;
        self.device
            .read_at(request.page.offset_bytes(), bytes.as_mut_slice())?;
        self.counters.pages_read.add(1);
        self.counters.pages_read_past.add(1);
        (request.check)(bytes)?;
        Ok(use_page(bytes))
    }
}

/// The bytes of a buffer that was made for one page.
fn whole_page(buffer: &mut AlignedBuf) -> Result<&mut PageBytes> {
    buffer
        .first_chunk_mut()
        .ok_or_else(|| Error::invalid("a buffer for a page is shorter than a page"))
}
