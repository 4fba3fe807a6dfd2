//! Fresh pages of an image. They bypass the mapping, because nothing reads them before the next opening.

use kreon_base::{Epoch, PAGE_BYTES, PageBytes, PageNo, RegionId, Result};
use kreon_device::{AlignedBuf, Write};
use kreon_format::{PageRun, StoreId, pages_of};

use crate::state::Storage;
use crate::tree::NodeSink;
use kreon_volume::Purpose;

/// Pages per allocation.
const RUN_PAGES: u64 = 512;

/// Pages per write, 256 KiB.
const BATCH_PAGES: usize = 64;

/// The pages of one image. A drop releases those that [`Self::take`] did not return.
pub struct ImagePages<'a> {
    storage: &'a Storage,
    epoch: Epoch,
    /// That of the next nodes.
    pub region: RegionId,
    next: PageNo,
    left: u64,
    handed_out: Vec<PageRun>,
    /// Unwritten pages; their content is in `bytes`.
    batch: Vec<PageNo>,
    bytes: AlignedBuf,
}

impl<'a> ImagePages<'a> {
    /// No pages yet. `epoch` goes into the nodes.
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

    /// Writes the unwritten pages; returns the pages allocated since the last call, which the caller owns from now on.
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
    /// Does not use the reserve, which is for spills, checkpoints and deletions.
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
        // Fails only for pages behind the end of the volume; these are from the allocator.
        let _ = self.storage.allocator.lock().release_pages(&pages);
    }
}
