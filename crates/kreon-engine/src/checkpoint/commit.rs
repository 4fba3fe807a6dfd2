//! One checkpoint.

use std::collections::BTreeMap;
use std::mem::take;
use std::sync::Arc;
use std::time::Instant;

use kreon_base::{Error, ErrorKind, PageBytes, PageNo, Result, SegmentId, planted};
use kreon_device::Device;
use kreon_format::{
    Catalogue, EPOCH_MAX, PagePointer, Superblock, encode_chain, pages_of, place_of,
};
use kreon_sync::RankedGuard;

use super::catalogue::{self, MAIN_LOG};
use super::kept_log;
use super::regions::{RegionPages, pointers};
use crate::events::Event;
use crate::level::Levels;
use crate::state::{Ledger, Storage};
use kreon_log::MOVED_LOG;
use kreon_volume::page_io::write_pages;
use kreon_volume::superblock;

/// The input of a checkpoint.
pub struct Change {
    /// The levels of all regions.
    pub levels: Arc<Levels>,
    /// Regions, marker, image and incarnation; [`commit`] sets epoch and pages.
    pub ledger: Ledger,
    /// Fresh pages of `levels` and of the image.
    pub kept: Vec<PageNo>,
    /// Pages to be freed.
    pub dropped: Vec<PageNo>,
    /// Change of live bytes by log segment.
    pub charges: BTreeMap<SegmentId, i64>,
}

impl Change {
    /// A change of the ledger only.
    pub fn of_ledger(ledger: Ledger, levels: Arc<Levels>) -> Self {
        let (kept, dropped, charges) = (Vec::new(), Vec::new(), BTreeMap::new());
        Self {
            levels,
            ledger,
            kept,
            dropped,
            charges,
        }
    }
}

/// Pages and segments that only readers of older views can reach.
pub struct Unreachable {
    pub pages: Vec<PageNo>,
    pub segments: Vec<SegmentId>,
}

/// Makes `change` durable and updates `ledger`, whose lock the caller holds.
///
/// # Errors
/// `OutOfSpace`, with nothing changed. Any other error poisons the store, because the durable state is unknown.
pub fn commit(
    storage: &Storage,
    ledger: &mut RankedGuard<'_, Ledger>,
    change: Change,
) -> Result<Unreachable> {
    storage.poison.check()?;
    let begun = Instant::now();
    let _span = tracing::debug_span!("checkpoint").entered();
    let outcome = write(storage, ledger, change);
    if let Err(error) = &outcome
        && error.kind() != ErrorKind::OutOfSpace
    {
        storage.poison.set(error);
    }
    if outcome.is_ok() {
        storage.tell(&Event::Checkpointed {
            epoch: ledger.epoch.0,
            took: begun.elapsed(),
        });
    }
    outcome
}

fn write(
    storage: &Storage,
    ledger: &mut RankedGuard<'_, Ledger>,
    mut change: Change,
) -> Result<Unreachable> {
    if ledger.epoch.0 >= EPOCH_MAX {
        return Err(Error::new(ErrorKind::OutOfSpace, "all epochs were used"));
    }
    let marker = change.ledger.marker;
    drop_superfluous(&mut change);
    sync_log(storage, &change.ledger)?;
    let outcome = storage.mapping.sync();
    planted!(WriteErrorSwallowed => let outcome = Ok(()));
    outcome?;
    let epoch = ledger.epoch.next();
    let log = kept_log::record(storage, marker);
    let in_stream_max = storage.regions_in_stream_max;
    let mut regions = RegionPages::plan(&change.ledger, &change.levels, in_stream_max);
    let in_stream = take(&mut regions.in_stream);
    let mut catalogue = catalogue::compose(&change.ledger, in_stream, log);

    let accounted = account(storage, ledger, &mut change, &mut catalogue, &regions)?;
    let (mut pages, catalogue_pages) = (accounted.bitmap, accounted.catalogue_pages);
    let (encoded, written) = regions.seal(storage.store, epoch, &accounted.region_pages)?;
    pages.extend(encoded);
    catalogue.region_pages = pointers(&written);
    let stream = catalogue.encode();
    let (encoded, head) = encode_chain(storage.store, epoch, &stream, &catalogue_pages)?;
    pages.extend(encoded);
    let superblock = Superblock {
        store: storage.store,
        epoch,
        incarnation: change.ledger.incarnation,
        segments: accounted.segments,
        catalogue: head,
        catalogue_bytes: stream.len() as u64,
    };
    // The allocator already takes the bitmap copies of this checkpoint for durable, so any failure from here on,
    // even a full disk, must poison the store.
    seal(storage, &pages, &superblock).map_err(unfinished)?;
    **ledger = Ledger {
        epoch,
        catalogue_pages,
        written: Arc::new(written),
        ..change.ledger
    };
    storage.made.settle(ledger.next_region);
    Ok(accounted.unreachable)
}

/// Makes the log durable up to the marker and up to the creation of every region in the catalogue: a durable region
/// implies the writes before it.
fn sync_log(storage: &Storage, ledger: &Ledger) -> Result<()> {
    planted!(MarkerBeforeLog => return Ok(()));
    storage.log.sync(ledger.marker.max(ledger.made_end))
}

/// Drops the parts of the image that end at or before the marker: the levels hold their entries.
fn drop_superfluous(change: &mut Change) {
    let (marker, image) = (change.ledger.marker, &mut change.ledger.image);
    let count = image.partition_point(|part| part.end <= marker);
    for part in image.drain(..count) {
        change.dropped.extend(pages_of(&part.pages));
    }
}

/// The allocator's answers for a checkpoint.
struct Accounted {
    region_pages: Vec<PageNo>,
    catalogue_pages: Vec<PageNo>,
    bitmap: Vec<(PageNo, Box<PageBytes>)>,
    /// Length of the volume.
    segments: u32,
    unreachable: Unreachable,
}

/// Updates the allocator in memory: allocates pages for `catalogue` and `regions`, books kept and dropped pages and
/// live bytes, retires dead log segments, and encodes the changed bitmap blocks.
fn account(
    storage: &Storage,
    ledger: &mut Ledger,
    change: &mut Change,
    catalogue: &mut Catalogue,
    regions: &RegionPages,
) -> Result<Accounted> {
    let (_, retired) = storage.views.waiting();
    let mut allocator = storage.allocator.lock();
    planted!(CatalogueInPlace => allocator.release_pages(&take(&mut ledger.catalogue_pages))?);
    // A placeholder: every pointer has the same length.
    let any = PagePointer {
        page: PageNo(0),
        epoch: ledger.epoch,
        checksum: 0,
    };
    catalogue.region_pages = vec![any; regions.count()];
    let fresh = regions.fresh_count();
    let mut region_pages = catalogue::take_pages(&mut allocator, catalogue, fresh)?;
    allocator.keep_pages(&change.kept)?;
    allocator.keep_pages(&region_pages)?;
    let catalogue_pages = region_pages.split_off(fresh);
    change.dropped.extend_from_slice(&ledger.catalogue_pages);
    change.dropped.extend(regions.dropped(&ledger.written));
    allocator.drop_pages(&change.dropped)?;
    for (segment, bytes) in &change.charges {
        allocator.charge(*segment, *bytes)?;
    }
    let needed_from = change.ledger.log_needed_from();
    planted!(SegmentFreedTooEarly => let needed_from = storage.log.tail());
    // An open segment that is full has nothing behind the marker, and stays the open one until the next record.
    let open = catalogue.logs.first().and_then(|log| log.open);
    let open_sequence = open.map_or(u64::MAX, |open| open.sequence);
    let end = place_of(needed_from).0.min(open_sequence);
    let kept_from = kept_log::keep(storage, &allocator, end, retired);
    let mut dead = allocator.retire_dead_log_segments(MAIN_LOG, end.min(kept_from))?;
    let moved_sequence = place_of(change.ledger.moved_marker).0;
    planted!(MovedSegmentFreedTooEarly => let moved_sequence = u64::MAX);
    dead.extend(allocator.retire_dead_log_segments(MOVED_LOG, moved_sequence)?);
    let bitmap = allocator.encode_changed(storage.store, ledger.epoch.next());
    catalogue.groups = allocator.pointers();
    Ok(Accounted {
        region_pages,
        catalogue_pages,
        bitmap,
        segments: allocator.segment_count(),
        unreachable: Unreachable {
            pages: take(&mut change.dropped),
            segments: dead,
        },
    })
}

/// Turns `OutOfSpace`, which promises that nothing changed, into `Io`.
fn unfinished(error: Error) -> Error {
    planted!(UnfinishedCheckpointForgotten => return error);
    match error.kind() {
        ErrorKind::OutOfSpace => Error::new(
            ErrorKind::Io,
            format!("a checkpoint was cut short: {error}"),
        ),
        _ => error,
    }
}

/// Writes and flushes `pages`, then commits and mirrors the superblock.
fn seal(
    storage: &Storage,
    pages: &[(PageNo, Box<PageBytes>)],
    superblock: &Superblock,
) -> Result<()> {
    let device = storage.device.as_ref();
    write_durably(device, pages)?;
    superblock::commit(device, superblock)?;
    superblock::mirror(device, superblock)
}

/// Writes and flushes: all pages that a superblock reaches must be durable before it is written.
fn write_durably(device: &dyn Device, pages: &[(PageNo, Box<PageBytes>)]) -> Result<()> {
    write_pages(device, pages)?;
    planted!(FlushSkippedBeforeSuperblock => return Ok(()));
    device.flush()
}
