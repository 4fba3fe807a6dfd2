//! The mapping itself, and reading through it.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};

use kreon_base::{Error, PageBytes, PageNo, Result};
use kreon_device::Device;
use parking_lot::Mutex;

use crate::background::BackgroundReads;
use crate::evict::EVICT_BATCH_MAX;
use crate::hot::Hot;
use crate::limits::check_addresses;
use crate::mapped::Mapped;
use crate::options::{Eviction, MappingModes, MappingOptions, PageRequest};
use crate::plan::Plan;
use crate::pool::Pool;
use crate::records::Records;
use crate::shard::{Pages, Shard};
use crate::stats::{ClassCounters, Counters};
use crate::stripes::StripeBudget;
use crate::waiters::Waiters;
use crate::well::{RetiredFrame, Space};
use crate::writeback::DirtyLimits;

/// Pages of a volume in frames: `Kreon 3.3` in user space.
///
/// A page is *resident* while it has a frame. Readers borrow it there; while they do, the frame is
/// not used for anything else. The content of a resident page never changes: a page is made
/// [fresh](Self::fresh), read until it is freed, and [discarded](Self::discard) before its number is
/// used for something else, be it through the mapping or past it.
///
/// All memory is reserved when the mapping is made. Locks are held for short work in memory only,
/// never during a transfer. Order of locks: evictor or table hand, then one shard, then a list of the
/// pool; limbo and the shards of records are never held together with another.
///
/// Dropping a mapping forgets dirty pages: [`sync`](Self::sync) first.
pub struct Mapping {
    /// Made with the first asynchronous read; `None` where the device has no queue. Stands before `pages`, so
    /// that it is dropped, and with it what is in flight waited for, while there are still frames.
    pub(crate) background: OnceLock<Option<BackgroundReads>>,
    /// Tasks that wait for loads of others.
    pub(crate) waiters: Waiters,
    pub(crate) device: Arc<dyn Device>,
    pub(crate) plan: Plan,
    pub(crate) pages: Pages,
    pub(crate) pool: Pool,
    /// Retired frames that readers were still using at the last look.
    pub(crate) limbo: Mutex<Vec<RetiredFrame>>,
    /// The kernel's mapping, where that is read instead.
    pub(crate) mapped: Option<Mapped>,
    /// Single records.
    pub(crate) hot: Option<Hot>,
    /// Whose turn it is to evict, and the shard where it goes on.
    pub(crate) evictor: Mutex<usize>,
    pub(crate) modes: MappingModes,
    /// Pages that are evicted at once.
    pub(crate) evict_batch: usize,
    pub(crate) dirty_limits: DirtyLimits,
    pub(crate) counters: Counters,
}

impl Mapping {
    /// A mapping of `device` with no page resident. Takes all the memory at once, unless that is to be sparse: about
    /// 0.2 s per GiB, less with huge pages.
    ///
    /// # Errors
    /// `InvalidArgument` if the memory is too little for 64 frames (half a MiB suffices), an option is
    /// out of range, or `RLIMIT_AS` leaves no room for the frames and for the page table of the longest
    /// volume, a thousandth of it; `Io` if the system does not have the memory.
    pub fn new(device: Arc<dyn Device>, options: MappingOptions) -> Result<Self> {
        let plan = Plan::new(&options, device.len_bytes())?;
        check_addresses(plan.address_bytes())?;
        let mapped = Mapped::new(&device, &options)?;
        let frames = plan.frames as u32;
        let (space, free) = Space::new(frames, plan.pages, options.huge_pages, options.backing)?;
        let pool = Pool::new(free, plan.frames, plan.shards);
        let pages = Pages {
            space,
            records: Records::new(frames),
            shards: (0..plan.shards).map(|_| Shard::new()).collect(),
            stripe_budget: StripeBudget::new(plan.stripes_max),
            classes: Box::new([const { AtomicUsize::new(0) }; _]),
            dirty: AtomicUsize::new(0),
            written: ClassCounters::default(),
            by_priority: options.modes.eviction == Eviction::Priority,
        };
        tracing::debug!(
            frames,
            stripes_max = plan.stripes_max,
            shards = plan.shards,
            "mapping made"
        );
        Ok(Self {
            background: OnceLock::new(),
            waiters: Waiters::new(),
            device,
            plan,
            pages,
            pool,
            limbo: Mutex::default(),
            mapped,
            hot: Hot::new(plan.record_table_bytes),
            evictor: Mutex::default(),
            modes: options.modes,
            evict_batch: (plan.frames / 8).min(EVICT_BATCH_MAX),
            dirty_limits: DirtyLimits::new(plan.frames, options.dirty_share_percent),
            counters: Counters::default(),
        })
    }

    /// Lends a page to `use_page`, where it lies.
    ///
    /// A resident page costs two loads from the table and a store to memory of this thread's own: no
    /// lock, no hash, no system call. Else it is read from the device first, once for all who want it
    /// then. `use_page` may read other pages; it should not take long, as the frame stays in use.
    /// If every frame is in use, the page is read into memory of its own, and not kept.
    ///
    /// # Errors
    /// Those of the device, and what `check` returns. The page is not resident then.
    #[inline]
    pub fn read<R>(
        &self,
        request: PageRequest<'_>,
        use_page: impl FnOnce(&PageBytes) -> R,
    ) -> Result<R> {
        match self.pages.space.pin(request.page) {
            Some(pinned) => {
                self.counters.hits.add(pinned.thread(), request.priority);
                Ok(use_page(pinned.bytes()))
            }
            None => self.read_missing(request, use_page),
        }
    }

    /// All memory that the mapping may come to use, in bytes: at most what it was given.
    pub fn memory_bytes(&self) -> usize {
        self.plan.bytes(self.plan.stripes_max)
    }

    /// Refuses pages that the volume can never have.
    pub(crate) fn check_page(&self, page: PageNo) -> Result<()> {
        if self.pages.space.has(page) {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "{page} is outside the volume, which has at most {} pages",
            self.plan.pages
        )))
    }
}
