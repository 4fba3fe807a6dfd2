//! The catalogue: regions, trees, logs and the places of the bitmap blocks, in a chain of fresh pages.

use kreon_base::{Epoch, Error, LogId, PageBytes, PageNo, Result};
use kreon_device::Device;
use kreon_format::{
    Catalogue, GroupPointer, LogRecord, PagePointer, RegionRecord, StoreId, decode_page,
    encode_chain, pages_needed,
};

use crate::level::Levels;
use crate::state::Ledger;
use crate::volume::page_io::read_pages;
use crate::volume::{Allocator, Purpose};

/// The one log group of this version.
pub const MAIN_LOG: LogId = LogId(0);

/// The catalogue of `ledger` with the trees of `levels`; the groups' places are filled in later.
pub fn compose(ledger: &Ledger, levels: &Levels, mut log: LogRecord) -> Catalogue {
    log.image.clone_from(&ledger.image);
    let regions = ledger.regions.iter().map(|(id, region)| RegionRecord {
        id: *id,
        name: region.name.clone(),
        log: MAIN_LOG,
        levels: levels.of(*id).to_vec(),
    });
    Catalogue {
        next_region: ledger.next_region,
        regions: regions.collect(),
        logs: vec![log],
        groups: Vec::new(),
    }
}

/// Takes the pages that `catalogue` will need once it names all groups. Taking pages may make the
/// volume longer and so add groups: repeats until they suffice.
///
/// # Errors
/// `OutOfSpace`; no page stays taken.
pub fn take_pages(allocator: &mut Allocator, catalogue: &mut Catalogue) -> Result<Vec<PageNo>> {
    // Every group pointer has the same length, so any will do to measure.
    let any = GroupPointer {
        copy: 0,
        epoch: Epoch(0),
        checksum: 0,
    };
    let mut pages: Vec<PageNo> = Vec::new();
    loop {
        catalogue.groups = vec![any; allocator.group_count()];
        let missing = pages_needed(catalogue.encode().len()).saturating_sub(pages.len());
        if missing == 0 {
            return Ok(pages);
        }
        match allocator.allocate_pages(missing as u64, Purpose::Upkeep) {
            Ok((first, count)) => pages.extend((first.0..first.0 + count).map(PageNo)),
            Err(error) => {
                allocator.release_pages(&pages)?;
                return Err(error);
            }
        }
    }
}

/// Encodes `catalogue` into `pages`, which [`take_pages`] took; returns them with their bytes, the
/// pointer to the first, and the length.
#[allow(clippy::type_complexity, reason = "pages with their bytes")]
pub fn encode(
    store: StoreId,
    epoch: Epoch,
    catalogue: &Catalogue,
    pages: &[PageNo],
) -> Result<(Vec<(PageNo, Box<PageBytes>)>, PagePointer, u64)> {
    let bytes = catalogue.encode();
    let (encoded, head) = encode_chain(store, epoch, &bytes, pages)?;
    Ok((encoded, head, bytes.len() as u64))
}

/// Reads the catalogue from its first page on; also returns its pages.
///
/// # Errors
/// `Corruption` if a page does not verify or the chain has another length than the superblock says.
pub fn read(
    device: &dyn Device,
    store: StoreId,
    head: PagePointer,
    len_bytes: u64,
) -> Result<(Catalogue, Vec<PageNo>)> {
    let (mut bytes, mut pages, mut next) = (Vec::new(), Vec::new(), Some(head));
    while let Some(pointer) = next {
        // Pages without payload may end the chain, so its length alone does not show a ring.
        if pages.contains(&pointer.page) {
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
    Ok((Catalogue::decode(&bytes)?, pages))
}
