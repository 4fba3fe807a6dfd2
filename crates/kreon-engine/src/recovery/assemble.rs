//! Builds the storage of a store from its recovered or initial state.

use std::sync::Arc;

use kreon_base::{PAGE_BYTES, PageNo, Result, SEGMENT_BYTES, planted};
use kreon_device::Device;
use kreon_format::StoreId;
use kreon_mapping::{Mapping, MappingOptions};
use kreon_sync::{Rank, RankedMutex};

use crate::checkpoint::catalogue::MAIN_LOG;
use crate::checkpoint::{self, Change};
use crate::events::Event;
use crate::level::{KeptLog, Levels, Memory, Views, VolumeSpace};
use crate::options::{MemorySplit, Options};
use crate::state::{DeadRecords, FeedLog, Ledger, Lifecycle, MadeRegions, Storage};
use kreon_log::{Log, LogHistory, LogHome, LogOptions, MOVED_LOG, MovedStream, Poison};
use kreon_volume::Allocator;

/// The recovered or initial state of a store.
pub struct Parts {
    pub device: Arc<dyn Device>,
    pub store: StoreId,
    pub allocator: Allocator,
    pub levels: Levels,
    /// The durable state, with this run's incarnation.
    pub ledger: Ledger,
    pub history: LogHistory,
    /// L0 with the entries of the image and of the replay.
    pub l0: Memory,
    /// From [`new_mapping`].
    pub mapping: Mapping,
}

/// Allocates frames and page array, and touches their memory unless `Options::backing` is sparse: about 0.1 s per GiB,
/// much longer if the system must reclaim memory first.
///
/// # Errors
/// `Io` if the system lacks the memory.
pub fn new_mapping(
    device: &Arc<dyn Device>,
    options: &Options,
    split: &MemorySplit,
) -> Result<Mapping> {
    // The page array covers the largest volume. It reserves address space, not memory.
    let volume_bytes_max = options.volume_bytes_max.min(device.len_bytes_max());
    Mapping::new(
        Arc::clone(device),
        MappingOptions {
            backing: options.backing,
            modes: options.designs.mapping,
            ..MappingOptions::new(split.mapping_bytes, volume_bytes_max.max(PAGE_BYTES as u64))
        },
    )
}

/// Builds the storage of a store. Writes only what the log needs to begin a segment.
pub fn assemble(mut parts: Parts, options: &Options, split: &MemorySplit) -> Result<Storage> {
    if options.scatter_pages {
        parts.allocator.scatter_pages();
    }
    let moved = parts.allocator.log_segments(MOVED_LOG);
    let allocator = Arc::new(RankedMutex::new(Rank::Allocator, parts.allocator));
    let mapping = Arc::new(parts.mapping);
    let home = LogHome {
        device: Arc::clone(&parts.device),
        log_device: options.mirroring.log_device.clone(),
        mirror: options.mirroring.log_mirror.clone(),
        space: Arc::new(VolumeSpace(Arc::clone(&allocator))),
        pages: Arc::new(KeptLog(Arc::clone(&mapping))),
        store: parts.store,
        log: MAIN_LOG,
        incarnation: parts.ledger.incarnation,
    };
    let log_options = LogOptions {
        buffers_max: (split.log_bytes as u64 / SEGMENT_BYTES) as usize,
        backing: options.backing,
        verifies_every_read: options.verify_every_read,
        ..LogOptions::default()
    };
    let (log, poison) = match options.read_only {
        true => (
            Log::open_to_read(home, parts.history, log_options)?,
            Poison::of_reader(),
        ),
        false => (
            Log::open(home, parts.history, log_options)?,
            poison(options),
        ),
    };
    planted!(ReadOnlyOpenWrites => let poison = Poison::default());
    let stream = MovedStream::new(&moved, split.collector_bytes / 2, options.backing);
    // Records moved by an earlier run are referenced by the levels, or dead.
    parts.ledger.moved_marker = stream.end();
    for (segment, sequence) in moved {
        log.adopt(segment, sequence);
    }
    Ok(Storage {
        device: parts.device,
        store: parts.store,
        mapping,
        allocator,
        log: Arc::new(log),
        moved: RankedMutex::new(Rank::MovedStream, stream),
        views: Views::new(Arc::new(parts.l0), Arc::new(parts.levels)),
        made: MadeRegions::new(parts.ledger.next_region),
        ledger: RankedMutex::new(Rank::Ledger, parts.ledger),
        regions_in_stream_max: options.regions_in_stream_max,
        dead: DeadRecords::new(split.dead_record_bytes),
        feed: FeedLog::new(options.changes_kept_bytes),
        poison,
        options: options.clone(),
        split: *split,
        gets: Arc::default(),
        lifecycle: Lifecycle::begin(),
    })
}

/// A poison that tells the listener its cause.
fn poison(options: &Options) -> Poison {
    let events = options.events.clone();
    Poison::telling(move |cause| {
        events.tell(&Event::Poisoned {
            cause: cause.clone(),
        });
    })
}

/// The checkpoint that makes this run's incarnation durable. No record may be written before it, because a later
/// replay would reject the incarnation. On return its superblock is in all four slots. It frees the pages `dropped`.
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

/// Most segments of the volume.
pub fn segments_max(options: &Options) -> u32 {
    let segments = options.volume_bytes_max / SEGMENT_BYTES;
    segments.min(u64::from(kreon_format::VOLUME_SEGMENTS_MAX)) as u32
}
