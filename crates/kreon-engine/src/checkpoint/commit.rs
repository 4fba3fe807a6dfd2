//! One checkpoint.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::sync::MutexGuard;
use kreon_base::{Bug, Error, ErrorKind, PageBytes, PageNo, Result, SegmentId};
use kreon_format::{Catalogue, EPOCH_MAX, PagePointer, Superblock, pages_of, place_of};

use super::catalogue::{self, MAIN_LOG};
use super::regions::{RegionPages, pointers};
use crate::level::Levels;
use crate::log::MOVED_LOG;
use crate::state::{Ledger, Parts};
use crate::volume::page_io::write_pages;
use crate::volume::superblock;

/// What a checkpoint makes durable, beside the log.
pub struct Change {
    /// The levels of all regions.
    pub levels: Arc<Levels>,
    /// The regions that exist, the marker and the incarnation; epoch and pages are filled in.
    pub ledger: Ledger,
    /// Fresh pages that `levels` reach.
    pub kept: Vec<PageNo>,
    /// Pages that `levels` no longer reach.
    pub dropped: Vec<PageNo>,
    /// Change of live bytes by log segment.
    pub charges: BTreeMap<SegmentId, i64>,
}

impl Change {
    /// A change of the ledger alone.
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

/// What became unreachable for everybody but readers of older views.
pub struct Unreachable {
    /// Pages.
    pub pages: Vec<PageNo>,
    /// Log segments.
    pub segments: Vec<SegmentId>,
}

/// Makes `change` durable and updates `ledger`, whose lock the caller holds.
///
/// # Errors
/// `OutOfSpace` before anything changed. Any other failure poisons the store: what is durable is
/// unknown.
pub fn commit(
    parts: &Parts,
    ledger: &mut MutexGuard<'_, Ledger>,
    change: Change,
) -> Result<Unreachable> {
    parts.poison.check()?;
    let outcome = write(parts, ledger, change);
    if let Err(error) = &outcome
        && error.kind() != ErrorKind::OutOfSpace
    {
        parts.poison.set(error);
    }
    outcome
}

fn write(
    parts: &Parts,
    ledger: &mut MutexGuard<'_, Ledger>,
    mut change: Change,
) -> Result<Unreachable> {
    if ledger.epoch.0 >= EPOCH_MAX {
        return Err(Error::new(ErrorKind::OutOfSpace, "all epochs were used"));
    }
    let marker = change.ledger.marker;
    drop_superfluous(&mut change);
    if !Bug::MarkerBeforeLog.is_planted() {
        // Regions that the catalogue has for the first time survive with all that was written before them.
        parts.log.sync(marker.max(change.ledger.made_end))?;
    }
    match parts.mapping.sync() {
        Err(_) if Bug::WriteErrorSwallowed.is_planted() => {}
        outcome => outcome?,
    }
    let epoch = ledger.epoch.next();
    let log = parts.log.checkpoint_record(marker);
    let in_stream_max = parts.regions_in_stream_max;
    let mut regions = RegionPages::plan(&change.ledger, &change.levels, in_stream_max);
    let in_stream = std::mem::take(&mut regions.in_stream);
    let mut catalogue = catalogue::compose(&change.ledger, in_stream, log);

    let Accounted {
        region_pages,
        catalogue_pages,
        bitmap: mut pages,
        segments,
        unreachable,
    } = account(parts, ledger, &mut change, &mut catalogue, &regions)?;
    let (encoded, written) = regions.seal(parts.store, epoch, &region_pages)?;
    pages.extend(encoded);
    catalogue.region_pages = pointers(&written);
    let (encoded, head, catalogue_bytes) =
        catalogue::encode(parts.store, epoch, &catalogue, &catalogue_pages)?;
    pages.extend(encoded);
    let superblock = Superblock {
        store: parts.store,
        epoch,
        incarnation: change.ledger.incarnation,
        segments,
        catalogue: head,
        catalogue_bytes,
    };
    // The allocator has changed by now, and takes the copies of the bitmap that this checkpoint wrote
    // for the durable ones: nothing may follow a failure, that of a full disk neither.
    seal(parts, &pages, &superblock).map_err(unfinished)?;
    **ledger = Ledger {
        epoch,
        catalogue_pages,
        written: Arc::new(written),
        ..change.ledger
    };
    parts.made.settle(ledger.next_region);
    Ok(unreachable)
}

/// What the levels hold needs no image.
fn drop_superfluous(change: &mut Change) {
    let (marker, image) = (change.ledger.marker, &mut change.ledger.image);
    let count = image.partition_point(|part| part.end <= marker);
    for part in image.drain(..count) {
        change.dropped.extend(pages_of(&part.pages));
    }
}

/// What the allocator says to a checkpoint.
struct Accounted {
    region_pages: Vec<PageNo>,
    catalogue_pages: Vec<PageNo>,
    bitmap: Vec<(PageNo, Box<PageBytes>)>,
    /// Length of the volume.
    segments: u32,
    unreachable: Unreachable,
}

/// Step 2 of the module's order in memory: takes pages for `catalogue` and its `regions`, tells the allocator what is kept and what
/// is dropped, and encodes its bitmap.
fn account(
    parts: &Parts,
    ledger: &mut Ledger,
    change: &mut Change,
    catalogue: &mut Catalogue,
    regions: &RegionPages,
) -> Result<Accounted> {
    let mut allocator = parts.allocator.lock();
    if Bug::CatalogueInPlace.is_planted() {
        allocator.release_pages(&std::mem::take(&mut ledger.catalogue_pages))?;
    }
    // Every pointer has the same length, so any will do to measure.
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
    let needed_from = match Bug::SegmentFreedTooEarly.is_planted() {
        true => parts.log.tail(),
        false => change.ledger.log_needed_from(),
    };
    let mut dead = allocator.retire_dead_log_segments(MAIN_LOG, place_of(needed_from).0);
    let moved_sequence = match Bug::MovedSegmentFreedTooEarly.is_planted() {
        true => u64::MAX,
        false => place_of(change.ledger.moved_marker).0,
    };
    dead.extend(allocator.retire_dead_log_segments(MOVED_LOG, moved_sequence));
    let bitmap = allocator.encode_changed(parts.store, ledger.epoch.next());
    catalogue.groups = allocator.pointers();
    Ok(Accounted {
        region_pages,
        catalogue_pages,
        bitmap,
        segments: allocator.segment_count(),
        unreachable: Unreachable {
            pages: std::mem::take(&mut change.dropped),
            segments: dead,
        },
    })
}

/// `OutOfSpace` would say that nothing changed.
fn unfinished(error: Error) -> Error {
    match error.kind() {
        ErrorKind::OutOfSpace if !Bug::UnfinishedCheckpointForgotten.is_planted() => Error::new(
            ErrorKind::Io,
            format!("a checkpoint was cut short: {error}"),
        ),
        _ => error,
    }
}

/// Steps 2 to 5 of the module's order.
fn seal(parts: &Parts, pages: &[(PageNo, Box<PageBytes>)], superblock: &Superblock) -> Result<()> {
    let device = parts.device.as_ref();
    write_pages(device, pages)?;
    if !Bug::FlushSkippedBeforeSuperblock.is_planted() {
        device.flush()?;
    }
    superblock::commit(device, superblock)?;
    superblock::mirror(device, superblock)
}
