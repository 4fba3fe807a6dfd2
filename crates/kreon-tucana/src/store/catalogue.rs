//! What a superblock leads to: one region with one tree, one log, and the blocks of the bitmap.

use kreon_base::{Epoch, Error, Lsn, PageNo, RegionId, RegionOptions, Result};
use kreon_device::Device;
use kreon_format::{
    Catalogue, GroupPointer, LogRecord, PagePointer, RegionRecord, TreeRecord, decode_page,
    pages_needed,
};
use kreon_volume::page_io::read_pages;
use kreon_volume::{Allocator, Purpose};

use super::home::LOG;
use super::log_mark::{LogMark, REGION};
use crate::format::{NodePointer, Superblock};
use crate::tree::TreeRoot;

const REGION_NAME: &str = "tucana";

/// The catalogue of a tree with this root, without the groups. The log goes on at `mark`, and is durable up to `log_end`.
pub(super) fn compose(root: &TreeRoot, mark: &LogMark, log_end: Lsn) -> Catalogue {
    let tree = TreeRecord {
        root: Some(PagePointer {
            page: root.pointer.page,
            epoch: root.pointer.epoch,
            // The node's own checksum, page and epoch prove it.
            checksum: 0,
        }),
        height: root.level + 1,
        ..TreeRecord::default()
    };
    let region = RegionRecord {
        id: REGION,
        name: REGION_NAME.into(),
        options: RegionOptions::default(),
        log: LOG,
        levels: vec![tree],
    };
    let log = LogRecord {
        id: LOG,
        marker: mark.marker,
        incarnation: mark.incarnation,
        resumes: Vec::new(),
        followed_from: None,
        durable: log_end,
        open: Some(mark.open),
        next: None,
        image: Vec::new(),
    };
    Catalogue {
        next_region: RegionId(REGION.0 + 1),
        regions: vec![region],
        logs: vec![log],
        ..Catalogue::default()
    }
}

/// Takes the pages of a catalogue with all groups, of `spare` and then of the volume. Repeats until they suffice, because an
/// allocation may add groups.
///
/// # Errors
/// `OutOfSpace`; those of the device.
pub(super) fn take_pages(
    allocator: &mut Allocator,
    catalogue: &mut Catalogue,
    spare: &mut Vec<PageNo>,
) -> Result<Vec<PageNo>> {
    // A placeholder: every pointer has the same length.
    let any = GroupPointer {
        copy: 0,
        epoch: Epoch(0),
        checksum: 0,
    };
    let mut pages: Vec<PageNo> = Vec::new();
    loop {
        catalogue.groups = vec![any; allocator.group_count()];
        let wanted = pages_needed(catalogue.encode().len());
        let missing = wanted.saturating_sub(pages.len()) as u64;
        if missing == 0 {
            return Ok(pages);
        }
        if let Some(page) = spare.pop() {
            pages.push(page);
            continue;
        }
        let (first, count) = allocator.allocate_pages(missing, Purpose::Maintenance)?;
        pages.extend((first.0..first.0 + count).map(PageNo));
    }
}

/// Reads the catalogue of a superblock, and the pages that it takes.
///
/// # Errors
/// `Corruption`; `Io`.
pub(super) fn read(
    device: &dyn Device,
    superblock: &Superblock,
) -> Result<(Catalogue, Vec<PageNo>)> {
    let (mut bytes, mut pages) = (Vec::new(), Vec::new());
    let mut next = Some(superblock.catalogue);
    while let Some(pointer) = next {
        if pages.contains(&pointer.page) || bytes.len() as u64 > superblock.catalogue_bytes {
            return Err(Error::corruption(
                "the catalogue is longer than its superblock says",
            ));
        }
        let page = read_pages(device, &[pointer.page])?;
        let (payload, following) = decode_page(page.first()?, superblock.store, &pointer)?;
        bytes.extend_from_slice(payload);
        pages.push(pointer.page);
        next = following;
    }
    if bytes.len() as u64 != superblock.catalogue_bytes {
        return Err(Error::corruption(
            "the catalogue has another length than its superblock says",
        ));
    }
    Ok((Catalogue::decode(&bytes)?, pages))
}

/// The root in a catalogue.
///
/// # Errors
/// `Corruption` if it has not exactly one region with one tree.
pub(super) fn root_of(catalogue: &Catalogue) -> Result<TreeRoot> {
    let wrong = || Error::corruption("the catalogue is not one of a tree of tucana");
    let [region] = catalogue.regions.as_slice() else {
        return Err(wrong());
    };
    let [tree] = region.levels.as_slice() else {
        return Err(wrong());
    };
    let root = tree.root.ok_or_else(wrong)?;
    Ok(TreeRoot {
        pointer: NodePointer {
            page: root.page,
            epoch: root.epoch,
        },
        level: tree.height.checked_sub(1).ok_or_else(wrong)?,
    })
}

/// Where the log goes on in a catalogue, and how far it is durable.
///
/// # Errors
/// `Corruption` if it has not exactly one log that is open.
pub(super) fn mark_of(catalogue: &Catalogue) -> Result<(LogMark, Lsn)> {
    let wrong = || Error::corruption("the catalogue is not one of a log of tucana");
    let [log] = catalogue.logs.as_slice() else {
        return Err(wrong());
    };
    let mark = LogMark {
        marker: log.marker,
        open: log.open.ok_or_else(wrong)?,
        incarnation: log.incarnation,
        moved_from: 0,
    };
    Ok((mark, log.durable))
}
