//! The catalogue: regions, trees, logs and the places of the bitmap blocks, in a chain of fresh pages.

use std::collections::BTreeSet;

use kreon_base::{Epoch, Error, LogId, PageNo, RegionId, Result};
use kreon_device::Device;
use kreon_format::{
    Catalogue, GroupPointer, LogRecord, PagePointer, RegionRecord, StoreId, decode_page,
    decode_region_page, pages_needed,
};

use crate::state::Ledger;
use kreon_volume::page_io::read_pages;
use kreon_volume::{Allocator, Purpose};

/// The main log of all regions, the only one in the catalogue.
pub const MAIN_LOG: LogId = LogId(0);

/// Region pages per read.
const READ_PAGES: usize = 256;

/// The catalogue of `ledger` with the regions `in_stream`. The caller fills in the region pages and the groups.
pub fn compose(ledger: &Ledger, in_stream: Vec<RegionRecord>, mut log: LogRecord) -> Catalogue {
    log.image.clone_from(&ledger.image);
    Catalogue {
        next_region: ledger.next_region,
        regions: in_stream,
        region_pages: Vec::new(),
        logs: vec![log],
        groups: Vec::new(),
    }
}

/// Allocates `count` more pages into `pages`.
///
/// # Errors
/// `OutOfSpace`; then all of `pages` are released.
fn take(allocator: &mut Allocator, pages: &mut Vec<PageNo>, count: usize) -> Result<()> {
    let wanted = pages.len() + count;
    while pages.len() < wanted {
        let missing = (wanted - pages.len()) as u64;
        match allocator.allocate_pages(missing, Purpose::Maintenance) {
            Ok((first, count)) => pages.extend((first.0..first.0 + count).map(PageNo)),
            Err(error) => {
                allocator.release_pages(&std::mem::take(pages))?;
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Allocates `region_pages` pages for regions, followed by the pages for the stream of `catalogue` with all groups.
/// Repeats until they suffice, because an allocation may grow the volume and add groups.
///
/// # Errors
/// `OutOfSpace`; then no page stays allocated.
pub fn take_pages(
    allocator: &mut Allocator,
    catalogue: &mut Catalogue,
    region_pages: usize,
) -> Result<Vec<PageNo>> {
    // A placeholder: every group pointer has the same length.
    let any = GroupPointer {
        copy: 0,
        epoch: Epoch(0),
        checksum: 0,
    };
    let mut pages: Vec<PageNo> = Vec::new();
    take(allocator, &mut pages, region_pages)?;
    loop {
        catalogue.groups = vec![any; allocator.group_count()];
        let wanted = region_pages + pages_needed(catalogue.encode().len());
        match wanted.saturating_sub(pages.len()) {
            0 => return Ok(pages),
            missing => take(allocator, &mut pages, missing)?,
        }
    }
}

/// A catalogue from the device.
pub struct ReadCatalogue {
    /// The catalogue, with the regions of the region pages added.
    pub catalogue: Catalogue,
    /// The pages of the stream.
    pub pages: Vec<PageNo>,
    /// The region pages, each with its regions.
    pub region_pages: Vec<(PagePointer, Vec<RegionId>)>,
}

/// Reads the catalogue from its first page `head` on.
///
/// # Errors
/// `Corruption` if a page does not verify or the length is not that of the superblock, `len_bytes`.
pub fn read(
    device: &dyn Device,
    store: StoreId,
    head: PagePointer,
    len_bytes: u64,
) -> Result<ReadCatalogue> {
    let (mut bytes, mut pages, mut next) = (Vec::new(), Vec::new(), Some(head));
    let mut seen = BTreeSet::new();
    while let Some(pointer) = next {
        // Pages may have no payload, so the length alone does not reveal a cycle.
        if !seen.insert(pointer.page) {
            return Err(Error::corruption(format!(
                "the catalogue comes back to its {}",
                pointer.page
            )));
        }
        if bytes.len() as u64 > len_bytes {
            return Err(Error::corruption(
                "the catalogue is longer than the superblock says",
            ));
        }
        let page = read_pages(device, &[pointer.page])?;
        let (payload, following) = decode_page(page.first()?, store, &pointer)?;
        bytes.extend_from_slice(payload);
        pages.push(pointer.page);
        next = following;
    }
    if bytes.len() as u64 != len_bytes {
        return Err(Error::corruption(format!(
            "the catalogue has {} bytes, the superblock says {len_bytes}",
            bytes.len()
        )));
    }
    let mut catalogue = Catalogue::decode(&bytes)?;
    let (regions, region_pages) = read_regions(device, store, &catalogue.region_pages)?;
    catalogue.add_regions(regions)?;
    Ok(ReadCatalogue {
        catalogue,
        pages,
        region_pages,
    })
}

/// The record of the only log.
///
/// # Errors
/// `Corruption` if there is another number of logs.
pub fn main_log(catalogue: &Catalogue) -> Result<&LogRecord> {
    match catalogue.logs.as_slice() {
        [record] if record.id == MAIN_LOG => Ok(record),
        logs => Err(Error::corruption(format!(
            "the catalogue has {} logs, this build knows one",
            logs.len()
        ))),
    }
}

/// The regions of the pages `pointers`, and their distribution over the pages.
#[allow(clippy::type_complexity, reason = "pages with their regions")]
fn read_regions(
    device: &dyn Device,
    store: StoreId,
    pointers: &[PagePointer],
) -> Result<(Vec<RegionRecord>, Vec<(PagePointer, Vec<RegionId>)>)> {
    let (mut regions, mut region_pages) = (Vec::new(), Vec::with_capacity(pointers.len()));
    for pointers in pointers.chunks(READ_PAGES) {
        let numbers: Vec<_> = pointers.iter().map(|pointer| pointer.page).collect();
        let read = read_pages(device, &numbers)?;
        for (pointer, page) in pointers.iter().zip(read.pages()) {
            let (payload, _) = decode_page(page, store, pointer)?;
            let found = decode_region_page(payload)?;
            region_pages.push((*pointer, found.iter().map(|region| region.id).collect()));
            regions.extend(found);
        }
    }
    Ok((regions, region_pages))
}
