//! An existing store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::Builder;

use kreon_base::{
    Error, Incarnation, Lsn, PAGE_BYTES, PageNo, Result, SEGMENT_BYTES, SEGMENT_PAGES, SegmentId,
    planted,
};
use kreon_device::{Backing, Device};
use kreon_format::{
    Catalogue, LogRecord, PagePointer, RecordKind, Superblock, place_of, range_end,
};
use kreon_l0::Keep;

use super::assemble::{Parts, assemble, first_checkpoint, new_mapping, segments_max};
use super::crew;
use super::image::{self, Restored};
use super::made::Made;
use crate::by_region::{ByRegion, chunk_of};
use crate::checkpoint::catalogue::{self, MAIN_LOG, ReadCatalogue};
use crate::image::room::Room;
use crate::level::{Levels, Memory};
use crate::options::{MemorySplit, Options};
use crate::state::{Ledger, RegionEntry, Storage, WrittenChunk, WrittenRegions};
use kreon_log::{LogHistory, ReplayEnd, ReplayRecord, ReplayStart, replay};
use kreon_volume::Allocator;

/// Opens the store that `superblock` describes.
pub fn open(
    device: Arc<dyn Device>,
    options: &Options,
    split: &MemorySplit,
    superblock: &Superblock,
) -> Result<Storage> {
    let store = superblock.store;
    let incarnation = options
        .mirroring
        .incarnation_after(superblock.incarnation)?;
    planted!(IncarnationKept => let incarnation = superblock.incarnation);
    let mut durable = Durable::read(&device, options, superblock, incarnation)?;
    let mut room = Room::unlimited();
    let memory = (2 * split.l0_bytes, &mut room);
    let image = image::restore(device.as_ref(), store, &mut durable.ledger, memory);
    let Restored { l0, long, damaged } = image;
    let mapping = || new_mapping(&device, options, split);
    let mut replay = || durable.replay(device.as_ref(), options, superblock, (&l0, &room));
    let (mapping, end) = match options.backing {
        Backing::Ahead => beside(mapping, replay)?,
        Backing::Sparse => (mapping()?, replay()?),
    };
    let Durable {
        mut allocator,
        mut ledger,
        levels,
        ..
    } = durable;
    trust_image(&mut ledger, end.history.end);
    let extend = |allocator: &mut Allocator, count| allocator.extend_to(count);
    let history = settle_segments(&device, &mut allocator, end, extend)?;
    let storage = assemble(
        Parts {
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
    image::insert_long(&storage, &long)?;
    first_checkpoint(&storage, damaged)?;
    Ok(storage)
}

/// The last checkpoint.
pub(super) struct Durable {
    pub read: ReadCatalogue,
    pub allocator: Allocator,
    /// With the incarnation of this run.
    pub ledger: Ledger,
    pub levels: Levels,
}

impl Durable {
    /// Reads what `superblock` leads to, but for the trees, the image of L0 and the log.
    pub fn read(
        device: &Arc<dyn Device>,
        options: &Options,
        superblock: &Superblock,
        incarnation: Incarnation,
    ) -> Result<Self> {
        let (store, segments) = (superblock.store, superblock.segments);
        check_length(device.as_ref(), segments)?;
        let (head, bytes) = (superblock.catalogue, superblock.catalogue_bytes);
        let read = catalogue::read(device.as_ref(), store, head, bytes)?;
        check_trees(&read.catalogue, segments)?;
        let record = catalogue::main_log(&read.catalogue)?;
        let (shared, groups) = (Arc::clone(device), &read.catalogue.groups);
        let segments_max = segments_max(options);
        let allocator = Allocator::load(shared, segments_max, store, segments, groups)?;
        let (ledger, levels) = durable_state((superblock, incarnation), &read, record);
        Ok(Self {
            read,
            allocator,
            ledger,
            levels,
        })
    }

    /// The largest inline limit of a region. One that the log makes may have a larger one: what is longer than this stays in
    /// the log.
    fn inline_value_bytes_max(&self, options: &Options) -> usize {
        let regions = self.ledger.regions.iter();
        let own = regions.filter_map(|(_, region)| region.options.inline_value_bytes_max);
        let largest = own.map(usize::from).max().unwrap_or(0);
        largest.max(options.inline_value_bytes_max)
    }

    /// Replays the log behind the image, or from the marker, into L0 as far as there is room.
    pub fn replay(
        &mut self,
        device: &dyn Device,
        options: &Options,
        superblock: &Superblock,
        into: (&Memory, &Room),
    ) -> Result<ReplayEnd> {
        let start = ReplayStart {
            device,
            store: superblock.store,
            record: catalogue::main_log(&self.read.catalogue)?,
            newest: superblock.incarnation,
            segments: &self.allocator.log_segments(MAIN_LOG),
            taken: &self.allocator.taken_segments(),
            value_bytes_max: self.inline_value_bytes_max(options),
            backing: options.backing,
            has_image: !self.ledger.image.is_empty(),
        };
        replay_into(
            into,
            &mut self.ledger,
            &start,
            options.inline_value_bytes_max,
        )
    }
}

/// Runs both at once, so that memory is touched while the log is read from the device.
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

fn replay_into(
    (l0, room): (&Memory, &Room),
    ledger: &mut Ledger,
    start: &ReplayStart<'_>,
    inline_max: usize,
) -> Result<ReplayEnd> {
    let mut made = Made::default();
    let end = crew::with_crew((l0, room), |crew| {
        replay(start, |mut record| {
            if record.kind == RecordKind::MakeRegion {
                return made.replay(ledger, &record);
            }
            if record.kind.is_notice() {
                return Ok(());
            }
            // Neither the catalogue nor the log so far created the region.
            if record.region >= ledger.next_region {
                return Err(is_older(&record, "which has a record of"));
            }
            // Values of a load: referenced by its tree, or the load never finished.
            let is_loaded = record.kind == RecordKind::Ingested;
            planted!(LoadReplayed => let is_loaded = false);
            // A record of an unknown region was written before the region was dropped.
            let Some(region) = ledger.regions.get(record.region).filter(|_| !is_loaded) else {
                return Ok(());
            };
            if record.kind == RecordKind::DeleteRange {
                return delete_range(l0, &record);
            }
            let own = region.options.inline_value_bytes_max;
            let inline_max = own.map_or(inline_max, usize::from);
            record.value = record.value.filter(|value| value.len() <= inline_max);
            crew.insert(&record)
        })
    })?;
    tracing::info!(records = end.record_count, "replayed the log");
    Ok(end)
}

/// Lowers `needed` of the image's parts to the end of the replayed log. It may lie in a unit that never ended; this
/// run overwrites that unit, so a later replay must not require it.
fn trust_image(ledger: &mut Ledger, end: Lsn) {
    for part in &mut ledger.image {
        part.needed = part.needed.min(end).max(part.end);
    }
}

/// Refuses a truncated volume, because its allocator would hand out segments behind the end.
pub(super) fn check_length(device: &dyn Device, segments: u32) -> Result<()> {
    let (expected, present) = (SegmentId(segments).offset_bytes(), device.len_bytes());
    if present < expected {
        return Err(Error::corruption(format!(
            "the volume was cut off after {present} bytes of {expected}"
        )));
    }
    Ok(())
}

/// Checks that trees claim no more pages and entries than the volume can hold, so that sums of these counts do not
/// overflow, and that images lie within the volume.
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

#[cold]
pub(super) fn is_older(record: &ReplayRecord<'_>, what: &str) -> Error {
    Error::corruption(format!(
        "the superblock is older than the log, {what} {} at {}: the device lost newer superblocks, or put this \
         one back",
        record.region, record.offset
    ))
}

/// Deletes the range at once, although the crew may still insert older records: LSNs define the order.
fn delete_range(l0: &Memory, record: &ReplayRecord<'_>) -> Result<()> {
    let end = range_end(record.value.unwrap_or_default())?;
    let range = (record.key, end);
    l0.delete_range(record.region, range, record.lsn, Keep::default());
    Ok(())
}

/// The ledger of this run, and the levels.
fn durable_state(
    (superblock, incarnation): (&Superblock, Incarnation),
    read: &ReadCatalogue,
    log: &LogRecord,
) -> (Ledger, Levels) {
    let (mut regions, mut levels) = (ByRegion::default(), Levels::default());
    for region in &read.catalogue.regions {
        let entry = RegionEntry {
            name: region.name.as_str().into(),
            options: region.options,
        };
        regions.insert(region.id, entry);
        // Empty trees took spills during a merge.
        let trees = region.levels.iter().filter(|tree| tree.root.is_some());
        levels.set(region.id, trees.copied().collect());
    }
    let (written, others) = written_regions(read, &regions, &levels);
    let ledger = Ledger {
        epoch: superblock.epoch,
        incarnation,
        next_region: read.catalogue.next_region,
        regions,
        marker: log.marker,
        image: log.image.clone(),
        catalogue_pages: read.pages.iter().copied().chain(others).collect(),
        written: Arc::new(written),
        ..Ledger::default()
    };
    (ledger, levels)
}

/// The region pages with the layout of this build, which checkpoints may keep, and the pages with another layout.
fn written_regions(
    read: &ReadCatalogue,
    regions: &ByRegion<RegionEntry>,
    levels: &Levels,
) -> (WrittenRegions, Vec<PageNo>) {
    let mut pages: BTreeMap<u32, (usize, Vec<PagePointer>)> = BTreeMap::new();
    let mut others = Vec::new();
    for (pointer, ids) in &read.region_pages {
        let chunk = ids.first().map(|id| chunk_of(*id));
        match chunk.filter(|chunk| ids.iter().all(|id| chunk_of(*id) == *chunk)) {
            Some(chunk) => {
                let (count, pointers) = pages.entry(chunk).or_default();
                *count += ids.len();
                pointers.push(*pointer);
            }
            None => others.push(pointer.page),
        }
    }
    let mut written = WrittenRegions::new();
    for (number, (count, pointers)) in pages {
        match regions.chunk(number).filter(|chunk| chunk.len() == count) {
            Some(chunk) => {
                let chunk = WrittenChunk {
                    regions: Arc::clone(chunk),
                    trees: levels.chunk(number).cloned(),
                    pages: pointers.into(),
                };
                written.insert(number, chunk);
            }
            None => others.extend(pointers.iter().map(|pointer| pointer.page)),
        }
    }
    (written, others)
}

/// Tells the allocator the log segments found behind the checkpoint, also those in later growth of the volume, up to which
/// `extend` makes it know segments.
pub(super) fn settle_segments(
    device: &Arc<dyn Device>,
    allocator: &mut Allocator,
    end: ReplayEnd,
    extend: impl FnOnce(&mut Allocator, u32) -> Result<()>,
) -> Result<LogHistory> {
    let highest = end
        .found
        .iter()
        .map(|(segment, _)| segment.0.saturating_add(1))
        .max()
        .unwrap_or(0);
    let present = (device.len_bytes() / SEGMENT_BYTES) as u32;
    if highest > present {
        return Err(Error::corruption(format!(
            "the log goes on in {}, behind the end of the volume",
            SegmentId(highest - 1)
        )));
    }
    extend(allocator, highest)?;
    for (segment, sequence) in &end.found {
        allocator.claim_log_segment(*segment, MAIN_LOG, *sequence)?;
    }
    for segment in end.unused {
        allocator.give_up_log_segment(segment)?;
        allocator.doubt(segment)?;
    }
    // A log that ends on the border of two segments has filled the last one.
    let (sequence, within) = place_of(end.history.end);
    let last = end.history.segments.last();
    let open = last.filter(|(_, last)| *last == sequence);
    let open = open.map(|(segment, _)| *segment);
    allocator.settle_log_end(&end.history.reserved, (open, within))?;
    Ok(end.history)
}
