//! Fresh pages of an image, straight to the device: nobody reads them before the next opening, so they
//! take no frame from what is read.

use kreon_base::{Epoch, PAGE_BYTES, PageBytes, PageNo, RegionId, Result};
use kreon_device::{AlignedBuf, Write};
use kreon_format::{PageRun, StoreId, pages_of};

use crate::state::Storage;
use crate::tree::NodeSink;
use kreon_volume::Purpose;

/// Pages taken from the allocator at a time.
const RUN_PAGES: u64 = 512;

/// Pages written at a time, 256 KiB.
const BATCH_PAGES: usize = 64;

/// The pages of one round. They go back when it is dropped, but for those that were kept.
pub struct ImagePages<'a> {
    storage: &'a Storage,
    epoch: Epoch,
    region: RegionId,
    next: PageNo,
    left: u64,
    handed_out: Vec<PageRun>,
    /// Pages whose bytes stand in `bytes` and wait to be written.
    batch: Vec<PageNo>,
    bytes: AlignedBuf,
}

impl<'a> ImagePages<'a> {
    /// None yet. `epoch` stands in the nodes.
    pub fn new(storage: &'a Storage, epoch: Epoch) -> Self {
        Self {
            storage,
            epoch,
            region: RegionId(0),
            next: PageNo(0),
            left: 0,
            handed_out: Vec::new(),
            batch: Vec::new(),
            bytes: AlignedBuf::new(BATCH_PAGES * PAGE_BYTES),
        }
    }

    /// The nodes that follow are of this region.
    pub fn begin_region(&mut self, region: RegionId) {
        self.region = region;
    }

    /// Writes what waits; returns the pages that were handed out since the last time, which are the
    /// caller's from now on.
    pub fn take(&mut self) -> Result<Vec<PageRun>> {
        self.write_batch()?;
        Ok(std::mem::take(&mut self.handed_out))
    }

    fn write_batch(&mut self) -> Result<()> {
        let bytes = self.bytes.as_chunks::<PAGE_BYTES>().0;
        let mut pages: Vec<_> = self.batch.drain(..).zip(bytes).collect();
        pages.sort_unstable_by_key(|(page, _)| *page);
        let mut writes: Vec<Write<'_>> = Vec::new();
        for (page, bytes) in &pages {
            let offset = page.offset_bytes();
            match writes.last_mut() {
                Some(last) if last.offset + (last.buffers.len() * PAGE_BYTES) as u64 == offset => {
                    last.buffers.push(bytes.as_slice());
                }
                _ => writes.push(Write::new(offset, bytes.as_slice())),
            }
        }
        match writes.is_empty() {
            true => Ok(()),
            false => self.storage.device.write(&writes),
        }
    }
}

impl NodeSink for ImagePages<'_> {
    /// Leaves the reserve alone: an image is never worth a spill or a deletion.
    fn allocate(&mut self) -> Result<PageNo> {
        if self.left == 0 {
            let mut allocator = self.storage.allocator.lock();
            (self.next, self.left) = allocator.allocate_pages(RUN_PAGES, Purpose::Put)?;
        }
        let page = self.next;
        self.next = PageNo(page.0 + 1);
        self.left -= 1;
        match self.handed_out.last_mut() {
            Some(run) if run.first.0 + u64::from(run.count) == page.0 => run.count += 1,
            _ => self.handed_out.push(PageRun {
                first: page,
                count: 1,
            }),
        }
        Ok(page)
    }

    fn write(&mut self, page: PageNo, _height: u8, bytes: &PageBytes) -> Result<()> {
        if self.batch.len() == BATCH_PAGES {
            self.write_batch()?;
        }
        let at = self.batch.len() * PAGE_BYTES;
        self.bytes[at..at + PAGE_BYTES].copy_from_slice(bytes);
        self.batch.push(page);
        Ok(())
    }

    fn store(&self) -> StoreId {
        self.storage.store.of_image()
    }

    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn region(&self) -> RegionId {
        self.region
    }
}

impl Drop for ImagePages<'_> {
    fn drop(&mut self) {
        let rest = (self.next.0..self.next.0 + self.left).map(PageNo);
        let pages: Vec<_> = rest.chain(pages_of(&self.handed_out)).collect();
        // Fails only for pages behind the end of the volume, and these came from the allocator.
        let _ = self.storage.allocator.lock().release_pages(&pages);
    }
}
