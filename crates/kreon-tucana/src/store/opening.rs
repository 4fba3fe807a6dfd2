//! How a store begins, and begins again.
//!
//! Every opening has a number, its *incarnation*, which is durable before anything else is written; epochs start with it.
//! So no epoch is ever used twice, whatever an opening that ended in a crash had written.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use kreon_base::{Epoch, Error, Incarnation, PageNo, Result, SEGMENT_BYTES, SegmentId};
use kreon_device::Device;
use kreon_format::{PagePointer, StoreId};
use kreon_sync::Mutex;
use kreon_volume::{Allocator, Usage, creation};

use super::catalogue;
use super::durable::{Durable, first_epoch};
use super::home::{Home, LOG, MOVED};
use super::log_mark::{LogMark, REGION};
use super::options::{Options, Recovery};
use super::replay::OldLog;
use super::standby::Standby;
use super::superblocks::{self, Found};
use super::volume_log::{KnownLog, VolumeLog};
use super::volume_pages::VolumePages;
use crate::format::Superblock;
use crate::tree::{Tree, TreeHome};

/// The parts of a store. What is in the log behind its last commit is not in the tree yet.
pub(super) struct Opened {
    pub home: Home,
    pub log: Arc<VolumeLog>,
    pub pages: Arc<VolumePages>,
    pub tree: Tree<VolumeLog>,
    pub durable: Durable,
    /// The log that is to be replayed, and where it begins.
    pub to_replay: Option<(LogMark, OldLog)>,
}

/// Opens the store on a device, or makes one if there is nothing.
///
/// # Errors
/// `InvalidArgument` if the device holds something else; `Corruption`; `OutOfSpace`; `Io`.
pub(super) fn open(device: Arc<dyn Device>, options: &Options) -> Result<Opened> {
    match superblocks::read(device.as_ref())? {
        Found::Nothing => create(device, options),
        Found::Store(superblock) => open_again(device, options, superblock),
    }
}

fn create(device: Arc<dyn Device>, options: &Options) -> Result<Opened> {
    let store = StoreId(random());
    let mapping = options.mapping(&device)?;
    creation::begin(device.as_ref(), store)?;
    let allocator = Allocator::new(Arc::clone(&device), options.segments_max());
    let home = Home {
        device,
        mapping,
        allocator: Arc::new(Mutex::new(allocator)),
        standby: Arc::default(),
        store,
        incarnation: Incarnation(1),
        poison: Arc::default(),
        flushing: Arc::default(),
    };
    let known = KnownLog {
        segments: Vec::new(),
        moved: Vec::new(),
        unwritten: Vec::new(),
        last: 0,
    };
    let log = Arc::new(VolumeLog::new(home.clone(), &known)?);
    let pages = Arc::new(VolumePages::new(Arc::clone(&home.allocator)));
    let tree_home = tree_home(&home, &log, &pages);
    let tree = Tree::new(tree_home, first_epoch(home.incarnation)?)?;
    let nothing = PagePointer {
        page: Default::default(),
        epoch: Epoch(0),
        checksum: 0,
    };
    let superblock = Superblock {
        store,
        commit: 0,
        epoch: Epoch(0),
        incarnation: home.incarnation,
        segments: 0,
        catalogue: nothing,
        catalogue_bytes: 0,
    };
    Ok(Opened {
        home,
        log,
        pages,
        tree,
        durable: durable_state(superblock, Vec::new(), 0),
        to_replay: None,
    })
}

fn open_again(
    device: Arc<dyn Device>,
    options: &Options,
    mut superblock: Superblock,
) -> Result<Opened> {
    if u64::from(superblock.segments) * SEGMENT_BYTES > device.len_bytes() {
        return Err(Error::corruption(format!(
            "the volume has {} bytes, less than its {} segments",
            device.len_bytes(),
            superblock.segments
        )));
    }
    let (catalogue, catalogue_pages) = catalogue::read(device.as_ref(), &superblock)?;
    let root = catalogue::root_of(&catalogue)?;
    let (mark, durable_end) = catalogue::mark_of(&catalogue)?;
    let mut allocator = Allocator::load(
        Arc::clone(&device),
        options.segments_max(),
        superblock.store,
        superblock.segments,
        &catalogue.groups,
    )?;
    superblock.incarnation.0 += 1;
    superblock.commit += 1;
    let epoch = first_epoch(superblock.incarnation)?;
    let mapping = options.mapping(&device)?;
    superblocks::commit(device.as_ref(), &superblock, || device.flush())?;
    let behind = OldLog::find((Arc::clone(&device), superblock.store), &mark, durable_end)?;
    claim(&mut allocator, &behind)?;
    let unwritten = unwritten(&mut allocator, &behind, &mark)?;
    let known = known_log(&allocator, &behind, unwritten);
    let live = live_bytes(&allocator, &known);
    let standby = Arc::new(Standby::recorded(&allocator));
    let home = Home {
        device: Arc::clone(&device),
        mapping,
        allocator: Arc::new(Mutex::new(allocator)),
        standby,
        store: superblock.store,
        incarnation: superblock.incarnation,
        poison: Arc::default(),
        flushing: Arc::default(),
    };
    let log = Arc::new(VolumeLog::new(home.clone(), &known)?);
    let pages = Arc::new(VolumePages::new(Arc::clone(&home.allocator)));
    let tree = Tree::open(tree_home(&home, &log, &pages), root, epoch)?;
    let is_wanted = options.recovery == Recovery::ReplayLog;
    Ok(Opened {
        home,
        log,
        pages,
        tree,
        durable: durable_state(superblock, catalogue_pages, live),
        to_replay: is_wanted.then_some((mark, behind)),
    })
}

/// Takes the segments of a log that its last commit did not know, before anything else is put there.
fn claim(allocator: &mut Allocator, log: &OldLog) -> Result<()> {
    let last = log.chain.iter().map(|at| at.segment.0 + 1).max();
    allocator.extend_to(last.unwrap_or(0))?;
    let mut chain = log.chain.iter();
    chain.try_for_each(|at| allocator.claim_log_segment(at.segment, LOG, at.sequence))
}

/// The segments that a log had reserved and never written, in their order: those behind the ones with headers. The last commit may
/// not know the first of them.
fn unwritten(allocator: &mut Allocator, log: &OldLog, mark: &LogMark) -> Result<Vec<SegmentId>> {
    let begun = log.chain.last().map(|at| at.sequence);
    let is_behind = |sequence| match begun {
        Some(last) => sequence > last,
        None => sequence >= mark.open.sequence,
    };
    let mut found = Vec::new();
    if let Some(named) = log.behind
        && log.is_there(named.segment)
    {
        allocator.extend_to(named.segment.0 + 1)?;
        let is_free = allocator.usage(named.segment) == Some(Usage::Free);
        found.extend(is_free.then_some(named.segment));
    }
    let reserved = allocator.log_segments(LOG).into_iter();
    // One with records that are in the tree has lost its header.
    let reserved = reserved
        .filter(|(segment, sequence)| is_behind(*sequence) && allocator.live_bytes(*segment) == 0);
    found.extend(reserved.map(|(segment, _)| segment));
    Ok(found)
}

fn known_log(allocator: &Allocator, behind: &OldLog, unwritten: Vec<SegmentId>) -> KnownLog {
    let (mut segments, moved) = (allocator.log_segments(LOG), allocator.log_segments(MOVED));
    let named = behind.chain.iter().chain(&behind.behind);
    let numbers = segments.iter().map(|(_, sequence)| *sequence);
    let last = numbers.chain(named.map(|at| at.sequence)).max();
    segments.retain(|(segment, _)| !unwritten.contains(segment));
    KnownLog {
        segments,
        moved,
        unwritten,
        last: last.unwrap_or(0),
    }
}

fn live_bytes(allocator: &Allocator, known: &KnownLog) -> u64 {
    let segments = known.segments.iter().chain(&known.moved);
    segments
        .map(|(segment, _)| u64::from(allocator.live_bytes(*segment)))
        .sum()
}

fn durable_state(superblock: Superblock, catalogue_pages: Vec<PageNo>, live: u64) -> Durable {
    Durable {
        superblock,
        catalogue_pages,
        spare_pages: Vec::new(),
        withheld: Vec::new(),
        live_bytes: live,
        mark: None,
        number: 0,
    }
}

fn tree_home(home: &Home, log: &Arc<VolumeLog>, pages: &Arc<VolumePages>) -> TreeHome<VolumeLog> {
    TreeHome {
        mapping: Arc::clone(&home.mapping),
        log: Arc::clone(log),
        pages: Arc::clone(pages) as _,
        store: home.store,
        region: REGION,
    }
}

/// A random store identity, so that remains of another store on the device never verify. The standard library seeds
/// its hasher from the operating system.
pub(super) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
