//! The parts of a store, once it is known what they start from.

use std::sync::Arc;

use kreon_base::{PAGE_BYTES, PageNo, Result, SEGMENT_BYTES};
use kreon_device::Device;
use kreon_format::StoreId;
use kreon_mapping::{Mapping, MappingOptions};
use kreon_sync::{Rank, RankedMutex};

use crate::checkpoint::catalogue::MAIN_LOG;
use crate::checkpoint::{self, Change};
use crate::level::{Levels, Memory, Views, VolumeSpace};
use crate::options::{MemorySplit, Options};
use crate::state::{Ledger, Lifecycle, MadeRegions, Storage};
use kreon_log::{Log, LogHistory, LogHome, LogOptions, MOVED_LOG, MovedStream, Poison};
use kreon_volume::Allocator;

/// What a store starts from.
pub struct Ground {
    /// The device under the volume.
    pub device: Arc<dyn Device>,
    /// The store's identity.
    pub store: StoreId,
    /// Segments and pages in use.
    pub allocator: Allocator,
    /// The level trees.
    pub levels: Levels,
    /// What is durable, with this run's incarnation.
    pub ledger: Ledger,
    /// The log so far.
    pub history: LogHistory,
    /// What replay found behind the marker.
    pub l0: Memory,
    /// See [`new_mapping`].
    pub mapping: Mapping,
}

/// Frames and the page array. Touches all of their memory, unless that is to be sparse: a tenth of a second for each GiB,
/// and much longer where the machine has to find it first.
///
/// # Errors
/// `Io` if the system has not so much memory.
pub fn new_mapping(
    device: &Arc<dyn Device>,
    options: &Options,
    split: &MemorySplit,
) -> Result<Mapping> {
    let volume_bytes_max = mapped_bytes(device.as_ref(), options);
    Mapping::new(
        Arc::clone(device),
        MappingOptions {
            backing: options.backing,
            modes: options.mapping,
            ..MappingOptions::new(split.mapping_bytes, volume_bytes_max)
        },
    )
}

/// Puts the storage of a store together. Writes nothing but what the log needs to begin a segment.
pub fn assemble(ground: Ground, options: &Options, split: &MemorySplit) -> Result<Storage> {
    let Ground {
        device,
        store,
        mut allocator,
        levels,
        mut ledger,
        history,
        l0,
        mapping,
    } = ground;
    let next_region = ledger.next_region;
    if options.scatter_pages {
        allocator.scatter_pages();
    }
    let moved = allocator.log_segments(MOVED_LOG);
    let allocator = Arc::new(RankedMutex::new(Rank::Allocator, allocator));
    let home = LogHome {
        device: Arc::clone(&device),
        space: Arc::new(VolumeSpace(Arc::clone(&allocator))),
        store,
        log: MAIN_LOG,
        incarnation: ledger.incarnation,
    };
    let buffers_max = (split.log_bytes as u64 / SEGMENT_BYTES) as usize;
    let log = Log::open(
        home,
        history,
        LogOptions {
            buffers_max,
            backing: options.backing,
            ..LogOptions::default()
        },
    )?;
    let stream = MovedStream::new(&moved, split.collector_bytes / 2, options.backing);
    // What an earlier run moved is in the levels, or forgotten.
    ledger.moved_marker = stream.end();
    for (segment, sequence) in moved {
        log.adopt(segment, sequence);
    }
    Ok(Storage {
        device,
        store,
        mapping: Arc::new(mapping),
        allocator,
        log: Arc::new(log),
        moved: RankedMutex::new(Rank::MovedStream, stream),
        views: Views::new(Arc::new(l0), Arc::new(levels)),
        ledger: RankedMutex::new(Rank::Ledger, ledger),
        made: MadeRegions::new(next_region),
        regions_in_stream_max: options.regions_in_stream_max,
        poison: Poison::default(),
        options: options.clone(),
        split: *split,
        gets: Arc::default(),
        lifecycle: Lifecycle::begin(),
    })
}

/// The page array covers what the volume may grow to; it costs addresses, not memory.
fn mapped_bytes(device: &dyn Device, options: &Options) -> u64 {
    options
        .volume_bytes_max
        .min(device.len_bytes_max())
        .max(PAGE_BYTES as u64)
}

/// The checkpoint that makes this run's incarnation durable: before it no record may be written
/// (a later replay would not believe in it). Its superblock stands in all four slots when this
/// returns. `dropped` pages belong to nothing any more.
pub fn first_checkpoint(storage: &Storage, dropped: Vec<PageNo>) -> Result<()> {
    let mut ledger = storage.ledger.lock();
    let levels = Arc::clone(&storage.views.load().levels);
    let change = Change {
        dropped,
        ..Change::of_ledger(ledger.with_made(&storage.made), levels)
    };
    let unreachable = checkpoint::commit(storage, &mut ledger, change)?;
    storage
        .views
        .retire(unreachable.pages, unreachable.segments);
    storage.device.flush()
}

/// Segments that the volume may grow to.
pub fn segments_max(options: &Options) -> u32 {
    let segments = options.volume_bytes_max / kreon_base::SEGMENT_BYTES;
    segments.min(u64::from(kreon_format::VOLUME_SEGMENTS_MAX)) as u32
}
