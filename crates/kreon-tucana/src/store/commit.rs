//! How a state becomes durable (`Tucana 2.2.3`).
//!
//! Nodes and log are on the device, unflushed, before: then come bitmap and catalogue, a flush, the superblock, a flush. A
//! page of the durable state is never written before a later state is durable.

use kreon_base::{Error, ErrorKind, Lsn, PageNo, Result, planted};
use kreon_format::encode_chain;
use kreon_volume::page_io::write_pages;

use super::catalogue;
use super::home::Home;
use super::superblocks;
use crate::format::{COMMIT_MAX, Superblock};
use crate::tree::Publication;

/// The durable state.
pub(super) struct Durable {
    pub superblock: Superblock,
    /// Pages of its catalogue.
    pub catalogue_pages: Vec<PageNo>,
}

/// Makes a publication durable, whose nodes and log up to `log_end` were written. Returns the pages of the catalogue
/// before, which nobody needs any more.
///
/// # Errors
/// `OutOfSpace`; those of the device. What is durable is unknown then.
pub(super) fn commit(
    home: &Home,
    durable: &mut Durable,
    publication: &Publication,
    log_end: Lsn,
) -> Result<Vec<PageNo>> {
    let number = durable.superblock.commit + 1;
    if number > COMMIT_MAX {
        return Err(Error::new(ErrorKind::OutOfSpace, "all commits were used"));
    }
    let mut catalogue = catalogue::compose(&publication.root, log_end, home.incarnation);
    let (pages, mut written, segments) = {
        let mut allocator = home.allocator.lock();
        let pages = catalogue::take_pages(&mut allocator, &mut catalogue)?;
        allocator.keep_pages(&publication.kept)?;
        allocator.keep_pages(&pages)?;
        allocator.drop_pages(&publication.dropped)?;
        allocator.drop_pages(&durable.catalogue_pages)?;
        let bitmap = allocator.encode_changed(home.store, publication.epoch);
        catalogue.groups = allocator.pointers();
        (pages, bitmap, allocator.segment_count())
    };
    let stream = catalogue.encode();
    let (chain, head) = encode_chain(home.store, publication.epoch, &stream, &pages)?;
    written.extend(chain);
    let superblock = Superblock {
        store: home.store,
        commit: number,
        epoch: publication.epoch,
        incarnation: home.incarnation,
        segments,
        catalogue: head,
        catalogue_bytes: stream.len() as u64,
    };
    planted!(SuperblockBeforeCatalogue => superblocks::commit(home.device.as_ref(), &superblock)?);
    write_pages(home.device.as_ref(), &written)?;
    home.device.flush()?;
    superblocks::commit(home.device.as_ref(), &superblock)?;
    durable.superblock = superblock;
    Ok(std::mem::replace(&mut durable.catalogue_pages, pages))
}
