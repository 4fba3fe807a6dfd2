//! How a store begins, and begins again.
//!
//! Every opening has a number, its *incarnation*, which is durable before anything else is written; epochs start with it.
//! So no epoch is ever used twice, whatever an opening that ended in a crash had written.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use kreon_base::{Epoch, Error, ErrorKind, Incarnation, Result, SEGMENT_BYTES};
use kreon_device::Device;
use kreon_format::{PagePointer, StoreId, VOLUME_SEGMENTS_MAX};
use kreon_mapping::{Mapping, MappingOptions};
use kreon_volume::{Allocator, creation};
use parking_lot::Mutex;

use super::catalogue::{self, REGION};
use super::commit::Durable;
use super::home::{Home, LOG};
use super::superblocks::{self, Found};
use super::volume_log::VolumeLog;
use super::volume_pages::VolumePages;
use crate::format::Superblock;
use crate::tree::{Tree, TreeHome};

/// Bits of an epoch that count within one opening: a freeze a second for eight years.
const EPOCH_BITS: u32 = 28;

/// Most openings.
const INCARNATION_MAX: u64 = (1 << (48 - EPOCH_BITS)) - 1;

/// How a store is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Memory for nodes and for what is read of the log, in bytes; 512 KiB at the least. Segments of the log in memory, 4 MiB
    /// in most cases, come on top. Default: 64 MiB. More: fewer reads, and fewer commits for want of frames.
    pub memory_bytes: usize,
    /// The longest that the volume may become, in bytes; rounded down to whole segments of 2 MiB. Default: 1 TiB.
    pub volume_bytes_max: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            memory_bytes: 64 << 20,
            volume_bytes_max: 1 << 40,
        }
    }
}

impl Options {
    fn segments_max(&self) -> u32 {
        let segments = self.volume_bytes_max / SEGMENT_BYTES;
        segments.min(u64::from(VOLUME_SEGMENTS_MAX)) as u32
    }

    fn mapping(&self, device: &Arc<dyn Device>) -> Result<Arc<Mapping>> {
        let volume_bytes_max = u64::from(self.segments_max()) * SEGMENT_BYTES;
        let options = MappingOptions::new(self.memory_bytes, volume_bytes_max);
        Ok(Arc::new(Mapping::new(Arc::clone(device), options)?))
    }
}

/// The parts of a store.
pub(super) struct Opened {
    pub home: Home,
    pub log: Arc<VolumeLog>,
    pub tree: Tree<VolumeLog>,
    pub durable: Durable,
    /// The tree is new, and not durable yet.
    pub is_new: bool,
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
        store,
        incarnation: Incarnation(1),
    };
    let log = Arc::new(VolumeLog::new(home.clone(), &[])?);
    let tree = Tree::new(tree_home(&home, &log), first_epoch(home.incarnation)?)?;
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
        tree,
        durable: Durable {
            superblock,
            catalogue_pages: Vec::new(),
        },
        is_new: true,
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
    let allocator = Allocator::load(
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
    superblocks::commit(device.as_ref(), &superblock)?;
    let segments = allocator.log_segments(LOG);
    let home = Home {
        device,
        mapping,
        allocator: Arc::new(Mutex::new(allocator)),
        store: superblock.store,
        incarnation: superblock.incarnation,
    };
    let log = Arc::new(VolumeLog::new(home.clone(), &segments)?);
    let tree = Tree::open(tree_home(&home, &log), root, epoch)?;
    Ok(Opened {
        home,
        log,
        tree,
        durable: Durable {
            superblock,
            catalogue_pages,
        },
        is_new: false,
    })
}

fn tree_home(home: &Home, log: &Arc<VolumeLog>) -> TreeHome<VolumeLog> {
    TreeHome {
        mapping: Arc::clone(&home.mapping),
        log: Arc::clone(log),
        pages: Arc::new(VolumePages::new(Arc::clone(&home.allocator))),
        store: home.store,
        region: REGION,
    }
}

/// The first epoch of an opening.
fn first_epoch(incarnation: Incarnation) -> Result<Epoch> {
    if incarnation.0 > INCARNATION_MAX {
        return Err(Error::new(ErrorKind::OutOfSpace, "all openings were used"));
    }
    Ok(Epoch(incarnation.0 << EPOCH_BITS))
}

/// Whether an opening has used its epochs: snapshots take some, too.
pub(super) fn is_used_up(epoch: Epoch, incarnation: Incarnation) -> bool {
    epoch.0 >= (incarnation.0 + 1) << EPOCH_BITS
}

/// A random store identity, so that remains of another store on the device never verify. The standard library seeds
/// its hasher from the operating system.
pub(super) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opening_never_uses_an_epoch_of_the_next() {
        let own = Incarnation(7);
        let next = first_epoch(Incarnation(8)).unwrap();
        assert!(!is_used_up(first_epoch(own).unwrap(), own));
        assert!(!is_used_up(Epoch(next.0 - 1), own));
        assert!(is_used_up(next, own) && is_used_up(next.next(), own));
        assert!(first_epoch(Incarnation(INCARNATION_MAX)).unwrap().0 < 1 << 48);
        assert!(first_epoch(Incarnation(INCARNATION_MAX + 1)).is_err());
    }
}
