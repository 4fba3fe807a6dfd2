//! An existing store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::Builder;

use kreon_base::{
    Bug, Error, Incarnation, LogId, Lsn, PAGE_BYTES, RegionId, Result, SEGMENT_PAGES, SegmentId,
};
use kreon_device::Device;
use kreon_format::{Catalogue, LogRecord, RecordKind, Superblock, range_end};
use kreon_l0::Keep;

use super::assemble::{Ground, assemble, first_checkpoint, new_mapping};
use super::image::{self, Restored};
use super::{Insert, Replayed, crew, segments_max};
use crate::checkpoint::catalogue::{self, MAIN_LOG};
use crate::level::{Levels, Memory};
use crate::log::{LogHistory, ReplayEnd, ReplayRecord, ReplayStart, replay};
use crate::options::{MemorySplit, Options};
use crate::state::{Ledger, Parts, RegionEntry};
use crate::volume::Allocator;

/// Opens the store that `superblock` describes.
pub fn open(
    device: Arc<dyn Device>,
    options: &Options,
    split: &MemorySplit,
    superblock: &Superblock,
    insert: Insert<'_>,
) -> Result<Parts> {
    let store = superblock.store;
    check_length(device.as_ref(), superblock.segments)?;
    let (catalogue, catalogue_pages) = catalogue::read(
        device.as_ref(),
        store,
        superblock.catalogue,
        superblock.catalogue_bytes,
    )?;
    check_trees(&catalogue, superblock.segments)?;
    let record = main_log(&catalogue)?;
    let max = segments_max(options);
    let segments = superblock.segments;
    let mut allocator =
        Allocator::load(Arc::clone(&device), max, store, segments, &catalogue.groups)?;

    let (mut ledger, levels) = durable_state(superblock, &catalogue, record, catalogue_pages);
    let image = image::restore(device.as_ref(), store, &mut ledger, 2 * split.l0_bytes);
    let Restored { l0, long, damaged } = image;
    let start = ReplayStart {
        device: device.as_ref(),
        store,
        record,
        newest: superblock.incarnation,
        segments: &allocator.log_segments(MAIN_LOG),
        value_bytes_max: options.inline_value_bytes_max,
        has_image: !ledger.image.is_empty(),
    };
    let (mapping, end) = beside(
        || new_mapping(&device, options, split),
        || replay_into(&l0, &ledger, &start, insert),
    )?;
    tracing::info!(records = end.record_count, "replayed the log");
    trust_image(&mut ledger, end.history.end);
    let history = settle_segments(&device, &mut allocator, end)?;
    let parts = assemble(
        Ground {
            device,
            store,
            allocator,
            levels,
            ledger,
            history,
            l0,
            mapping,
        },
        options,
        split,
    )?;
    image::insert_long(&parts, &long, insert)?;
    first_checkpoint(&parts, damaged)?;
    Ok(parts)
}

/// Does both at once: while the log comes from the device there is time to touch memory.
fn beside<A: Send, B>(
    aside: impl FnOnce() -> Result<A> + Send,
    work: impl FnOnce() -> Result<B>,
) -> Result<(A, B)> {
    std::thread::scope(|scope| {
        let aside = Builder::new()
            .name("kreon-memory".into())
            .spawn_scoped(scope, aside)
            .map_err(|error| Error::io("start a thread that touches memory", error))?;
        let done = work();
        let died = |_| Error::invalid("the thread that touches memory died");
        let touched = aside.join().map_err(died)?;
        let done = done?;
        Ok((touched?, done))
    })
}

/// Replays the log behind the image into L0.
fn replay_into(
    l0: &Memory,
    ledger: &Ledger,
    start: &ReplayStart<'_>,
    insert: Insert<'_>,
) -> Result<ReplayEnd> {
    crew::with_crew(l0, insert, |crew| {
        replay(start, |record| {
            check_region(ledger, &record)?;
            // Loads: the trees have them, or they never ended.
            let is_loaded = record.kind == RecordKind::Ingested && !Bug::LoadReplayed.is_planted();
            // If there is no region, it was written before that was dropped.
            if is_loaded || !ledger.regions.contains_key(&record.region) {
                return Ok(());
            }
            match record.kind {
                RecordKind::DeleteRange => delete_range(l0, &record),
                _ => crew.insert(&replayed(&record)),
            }
        })
    })
}

/// What an image needs of the log was found. It may reach into a unit that was under way when the image was
/// taken and never ended: this run writes over that, and the next one must not look for it.
fn trust_image(ledger: &mut Ledger, end: Lsn) {
    for part in &mut ledger.image {
        part.needed = part.needed.min(end).max(part.end);
    }
}

/// A volume that lost its end is not opened: what it says is free may no longer be there to be written.
fn check_length(device: &dyn Device, segments: u32) -> Result<()> {
    let (expected, present) = (SegmentId(segments).offset_bytes(), device.len_bytes());
    if present < expected {
        return Err(Error::corruption(format!(
            "the volume was cut off after {present} bytes of {expected}"
        )));
    }
    Ok(())
}

/// The counts of a tree are added up from here on: none may be more than the volume holds. The pages of
/// images are within it.
fn check_trees(catalogue: &Catalogue, segments: u32) -> Result<()> {
    let volume_pages = u64::from(segments) * SEGMENT_PAGES;
    let parts = catalogue.logs.iter().flat_map(|log| &log.image);
    for run in parts.flat_map(|part| &part.pages) {
        if run.first.0 + u64::from(run.count) > volume_pages {
            return Err(Error::corruption(format!(
                "catalogue: an image of L0 has pages behind the end of the volume, from {} on",
                run.first
            )));
        }
    }
    for region in &catalogue.regions {
        for tree in &region.levels {
            let pages = tree.leaf_pages.checked_add(tree.index_pages);
            let fits = pages.is_some_and(|pages| pages <= volume_pages)
                && tree.entries <= tree.leaf_pages * PAGE_BYTES as u64;
            if !fits {
                let name = &region.name;
                return Err(Error::corruption(format!(
                    "catalogue: the tree of region {name:?} has more pages or entries than the volume"
                )));
            }
        }
    }
    Ok(())
}

/// # Errors
/// `Corruption` if the superblock does not know the region of a record: a region is made before anything
/// is written to it.
fn check_region(ledger: &Ledger, record: &ReplayRecord<'_>) -> Result<()> {
    match record.region < ledger.next_region {
        true => Ok(()),
        false => Err(Error::corruption(format!(
            "the superblock is older than the log, which has a record of {} at {}: the device lost \
             newer superblocks, or put this one back",
            record.region, record.offset
        ))),
    }
}

/// Beside the crew, which may be at older records still: their order stands in their positions.
fn delete_range(l0: &Memory, record: &ReplayRecord<'_>) -> Result<()> {
    let end = range_end(record.value.unwrap_or_default())?;
    let range = (record.key, end);
    l0.delete_range(record.region, range, record.lsn, Keep::default());
    Ok(())
}

fn main_log(catalogue: &Catalogue) -> Result<&LogRecord> {
    match catalogue.logs.as_slice() {
        [record] if record.id == MAIN_LOG => Ok(record),
        logs => Err(Error::corruption(format!(
            "the catalogue has {} logs, this build knows one",
            logs.len()
        ))),
    }
}

/// The ledger of the next run, and the levels.
fn durable_state(
    superblock: &Superblock,
    catalogue: &Catalogue,
    log: &LogRecord,
    catalogue_pages: Vec<kreon_base::PageNo>,
) -> (Ledger, Levels) {
    let (mut regions, mut levels) = (BTreeMap::<RegionId, RegionEntry>::new(), Levels::default());
    for region in &catalogue.regions {
        regions.insert(
            region.id,
            RegionEntry {
                name: region.name.clone(),
            },
        );
        // Empty ones were there for spills beside a merge.
        let trees = region.levels.iter().filter(|tree| tree.root.is_some());
        levels.set(region.id, trees.copied().collect());
    }
    let ledger = Ledger {
        epoch: superblock.epoch,
        incarnation: Incarnation(
            superblock.incarnation.0 + u64::from(!Bug::IncarnationKept.is_planted()),
        ),
        next_region: catalogue.next_region,
        regions,
        marker: log.marker,
        moved_marker: Lsn(0),
        image: log.image.clone(),
        found_damaged_image: false,
        catalogue_pages,
        loads: BTreeMap::new(),
    };
    (ledger, levels)
}

fn replayed<'a>(record: &ReplayRecord<'a>) -> Replayed<'a> {
    Replayed {
        lsn: record.lsn,
        offset: record.offset,
        region: record.region,
        key: record.key,
        value_bytes: (record.kind != RecordKind::Delete).then_some(record.value_bytes),
        value: record.value,
    }
}

/// Tells the allocator which segments the log holds behind the checkpoint. The volume may have grown
/// since.
fn settle_segments(
    device: &Arc<dyn Device>,
    allocator: &mut Allocator,
    end: ReplayEnd,
) -> Result<LogHistory> {
    let highest = end
        .found
        .iter()
        .map(|(segment, _)| segment.0.saturating_add(1))
        .max()
        .unwrap_or(0);
    let present = (device.len_bytes() / kreon_base::SEGMENT_BYTES) as u32;
    if highest > present {
        return Err(Error::corruption(format!(
            "the log goes on in {}, behind the end of the volume",
            SegmentId(highest - 1)
        )));
    }
    allocator.extend_to(highest)?;
    for (segment, sequence) in &end.found {
        allocator.claim_log_segment(*segment, LogId(MAIN_LOG.0), *sequence)?;
    }
    for segment in end.unused {
        allocator.give_up_log_segment(segment)?;
        allocator.doubt(segment)?;
    }
    let last = end.history.segments.last().map(|(segment, _)| *segment);
    allocator.doubt_log_end(end.history.reserved.iter().copied().chain(last))?;
    Ok(end.history)
}
