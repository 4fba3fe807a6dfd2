//! A store: what a user sees.

use std::sync::Arc;

use kreon_base::{Result, SEGMENT_BYTES};
use kreon_device::Device;

use super::handle::{Core, Handle};
use super::opening;
use super::options::Options;
use super::region::Region;
use super::regions::Regions;
use super::shared::Shared;
use super::snapshot::StoreSnapshot;
use super::threads::Threads;
use super::verify::verify;
use crate::tree::{TreeStats, Verified};

/// Pairs of keys and values on a device, in regions. Any number of threads use a store at once.
///
/// ```
/// # fn main() -> tucana::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("store");
/// use tucana::{Creation, Direction, Options, Store};
/// let store = Store::open_file(path, &Options::default(), Creation::IfEmpty)?;
/// let cities = store.region("cities")?;
/// cities.put("gr/heraklion", "41")?;
/// cities.put("gr/chania", "12")?;
/// let first = cities.scan("gr/".."gr0", Direction::Forward).next();
/// assert_eq!(first.transpose()?, Some((b"gr/chania".to_vec(), b"12".to_vec())));
/// store.close()
/// # }
/// ```
///
/// A write is visible when its call returns. It is durable then, too, with [`Durability::Sync`](crate::Durability::Sync); with `Buffered` when a
/// [`sync`](Self::sync) or [`commit`](Self::commit) that began after that returns, or when a thread of the store has
/// committed. After a crash the store holds a prefix of all writes in their order, with all that were durable.
///
/// A handle: clones are the same store, and regions, scans and snapshots keep it open, too. It ends when the last of them is dropped,
/// without a commit, or when one is [closed](Self::close). Calls of a closed store fail with `Closed`.
#[derive(Clone)]
pub struct Store {
    handle: Arc<Handle>,
}

impl Store {
    /// Opens the store on a device, or makes one if the device is empty.
    ///
    /// # Errors
    /// `InvalidArgument` if the device holds something else, or the memory is too little; `Corruption`; `OutOfSpace`; `Io`.
    pub fn open(device: Arc<dyn Device>, options: &Options) -> Result<Self> {
        let opened = opening::open(device, options)?;
        let shared = Arc::new(Shared::begin(opened, options)?);
        let threads = Threads::start(&shared)?;
        let regions = Regions::new();
        if let Err(error) = regions.finish_drops(&shared) {
            // Nobody sees the keys that are left. Another opening tries again.
            tracing::warn!(%error, "what is left of dropped regions was not deleted");
        }
        let core = Core {
            shared,
            regions,
            _threads: threads,
        };
        Ok(Self {
            handle: Arc::new(Handle::new(core)),
        })
    }

    /// The region called `name`, made if there is none, durably.
    ///
    /// # Errors
    /// `InvalidArgument`: the name is empty or longer than 255 bytes. `OutOfSpace`: there is no new region. `Closed`; `Poisoned`;
    /// `Corruption`; `Io`.
    pub fn region(&self, name: &str) -> Result<Region> {
        let state = self.with(|core| core.regions.get_or_make(&core.shared, name))?;
        Ok(Region::new(&self.handle, state))
    }

    /// The region called `name`, which must exist.
    ///
    /// # Errors
    /// `NotFound`: there is none. `Closed`; `Corruption`; `Io`.
    pub fn existing_region(&self, name: &str) -> Result<Region> {
        let state = self.with(|core| core.regions.existing(&core.shared, name))?;
        Ok(Region::new(&self.handle, state))
    }

    /// The names of all regions, ascending by their bytes.
    ///
    /// # Errors
    /// `Closed`; `Corruption`; `Io`.
    pub fn region_names(&self) -> Result<Vec<String>> {
        self.with(|core| core.regions.list(&core.shared))
    }

    /// Drops a region with all its pairs: first its name, durably, then its keys, one by one. From the first step on its handles return
    /// `Closed`; no write comes into it any more. Snapshots still see it. A full volume does not stop it.
    ///
    /// If the second step is cut short, by an error or a power cut, nobody sees the keys that are left: the next drop or opening
    /// deletes them.
    ///
    /// # Errors
    /// `NotFound`: there is none. `Closed`; `Poisoned`; `Corruption`; `OutOfSpace`; `Io`. If the region is gone, but perhaps not durably
    /// or not with all of its keys, the error says so.
    pub fn drop_region(&self, name: &str) -> Result<()> {
        self.with(|core| core.regions.drop_region(&core.shared, name))
    }

    /// The state of all regions at this moment. While it lives, nothing that it shows gives its space back.
    ///
    /// # Errors
    /// `Closed`.
    pub fn snapshot(&self) -> Result<StoreSnapshot> {
        let state = self.with(|core| Ok(core.shared.tree.freeze().into_frozen()))?;
        Ok(StoreSnapshot::new(&self.handle, state))
    }

    /// Makes everything durable that was written before the call, through the log: one flush, shared with others that
    /// wait.
    ///
    /// # Errors
    /// Those of the device: what is durable is unknown then, and the store takes no more writes until it is opened again.
    pub fn sync(&self) -> Result<()> {
        self.with(|core| core.shared.sync())
    }

    /// Makes everything durable that was written before the call, in the tree, so that the next opening replays none of it.
    /// Writers go on meanwhile, except for the moment in which the epoch ends.
    ///
    /// # Errors
    /// `OutOfSpace`: nothing has happened. Those of the device: the store takes no more writes then. Open it again: what was
    /// durable before is there.
    pub fn commit(&self) -> Result<()> {
        self.with(|core| core.shared.commit())
    }

    /// Commits, and reads all of what is durable then: every node, every record that a leaf points at, whether exactly the
    /// pages of nodes and catalogue are recorded as in use, and whether the live bytes of each segment of the log are those of
    /// its records. Tells how many keys all regions have. Commits wait meanwhile, and so do writers as soon as they need one.
    ///
    /// # Errors
    /// `Corruption` that names the page; those of a commit.
    pub fn verify(&self) -> Result<Verified> {
        self.with(|core| verify(&core.shared))
    }

    /// Makes everything durable, as [`commit`](Self::commit), and closes the store for all its handles: later calls fail with
    /// `Closed`, those under way end first, which it waits for. When it returns, the file is unlocked and nothing is written to it any
    /// more. A further close waits for the first and has its outcome. Must not be called by what a get shows its value to.
    ///
    /// # Errors
    /// As [`commit`](Self::commit). The store is closed nonetheless.
    pub fn close(self) -> Result<()> {
        self.handle.close()
    }

    /// What its tree did since it was opened; nothing of a closed store.
    pub fn stats(&self) -> TreeStats {
        self.with(|core| Ok(core.shared.tree.stats()))
            .unwrap_or_default()
    }

    /// Bytes of zeroes that were written behind the records of small flushes since the store was opened, so that the next ones write
    /// over blocks which the file has already; none of a closed store.
    pub fn zeroed_bytes(&self) -> u64 {
        self.with(|core| Ok(core.shared.log.zeroed_bytes()))
            .unwrap_or_default()
    }

    /// Bytes of the volume that segments take which hold something, are reserved for the log or on standby for the next opening, or
    /// wait for readers and snapshots; none of a closed store.
    pub fn used_bytes(&self) -> u64 {
        let used_bytes = |core: &Core| {
            let allocator = core.shared.home.allocator.lock();
            let taken = allocator.segment_count() - allocator.free_segment_count();
            Ok(u64::from(taken) * SEGMENT_BYTES)
        };
        self.with(used_bytes).unwrap_or_default()
    }

    fn with<R>(&self, call: impl FnOnce(&Core) -> Result<R>) -> Result<R> {
        self.handle.with(call)
    }
}
