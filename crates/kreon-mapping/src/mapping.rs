//! The mapping: what a user of the crate sees. It delegates to the reader and its parts, and has no state of its own
//! beside the plan of its memory.

#[cfg(feature = "lock-times")]
mod demands;
mod open_frame;
mod reads;
mod resident;
mod writes;

use std::sync::{Arc, Weak};

use kreon_base::{PageBytes, PageNo, Priority, Result};
use kreon_device::Device;

use crate::async_read::{AsyncReader, Rounds};
use crate::evict::Frames;
use crate::limits::check_addresses;
use crate::options::{MappingOptions, PageRequest};
use crate::plan::MemoryPlan;
use crate::read::{Mapped, PageReader, ReadCounters};
use crate::stats::{self, MappingStats, PriorityStats};

pub use open_frame::OpenFrame;

/// Pages of a volume in frames: `Kreon 3.3` in user space.
///
/// A page is *resident* while it has a frame. Readers borrow it there; meanwhile the frame is not used for anything
/// else. The content of a resident page never changes: a page is made [fresh](Self::fresh), read until it is freed, and
/// [discarded](Self::discard) before its number is used for something else, through the mapping or past it.
///
/// All memory is reserved when the mapping is made. Locks are held for short work in memory only, never during a transfer.
///
/// Dropping a mapping loses dirty pages: [`sync`](Self::sync) first.
pub struct Mapping {
    reads: AsyncReader,
    plan: MemoryPlan,
}

impl Mapping {
    /// A mapping of `device` with no page resident. Takes all the memory at once, unless that is to be sparse: about
    /// 0.2 s per GiB, less with huge pages.
    ///
    /// # Errors
    /// `InvalidArgument` if the memory is too little for 64 frames (half a MiB suffices), an option is
    /// out of range, or `RLIMIT_AS` leaves no room for the frames and for the page array of the longest
    /// volume, a thousandth of it; `Io` if the system does not have the memory.
    pub fn new(device: Arc<dyn Device>, options: MappingOptions) -> Result<Self> {
        let plan = MemoryPlan::new(&options, device.len_bytes())?;
        check_addresses(plan.address_bytes())?;
        let mapped = Mapped::new(&device, &options)?;
        let table_bytes = plan.record_table_bytes;
        let frames = Frames::new(Arc::clone(&device), &plan.table, table_bytes, &options)?;
        tracing::debug!(
            frames = plan.table.frames,
            stripes_max = plan.table.stripes_max,
            shards = plan.table.shards,
            "mapping made"
        );
        let reader = PageReader {
            frames,
            device,
            mapped,
            modes: options.modes,
            counters: ReadCounters::default(),
        };
        Ok(Self {
            reads: AsyncReader::new(reader),
            plan,
        })
    }

    /// Lends a page to `use_page`, in its frame.
    ///
    /// A resident page costs two loads from the page array and a store to memory of this thread's own: no lock, no hash,
    /// no system call. An absent page is read from the device first, once for all its readers. `use_page` may read
    /// other pages; it should not take long, because the frame stays in use. If all frames are in use, the page is read
    /// into memory of its own, and not kept.
    ///
    /// # Errors
    /// Those of the device, and what `check` returns. The page is not resident then.
    #[inline]
    pub fn read<R>(
        &self,
        request: PageRequest<'_>,
        use_page: impl FnOnce(&PageBytes) -> R,
    ) -> Result<R> {
        self.reader().read(request, use_page)
    }

    /// Lends the page if it is resident; never waits. The priority is that of a request for it.
    pub fn read_resident<R>(
        &self,
        page: PageNo,
        priority: Priority,
        use_page: impl FnOnce(&PageBytes) -> R,
    ) -> Option<R> {
        self.reader().read_resident(page, priority, use_page)
    }

    /// Whether the page is resident at this moment.
    #[inline]
    pub fn is_resident(&self, page: PageNo) -> bool {
        self.reader().table().is_resident(page)
    }

    /// The most memory that the mapping will use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.plan.bytes(self.plan.table.stripes_max)
    }

    /// What the mapping did, and what it holds.
    pub fn stats(&self) -> MappingStats {
        MappingStats::collect(self.reader(), &self.plan)
    }

    /// What it did with pages of each priority that was counted; those from 46 to 254 count as 46.
    pub fn stats_by_priority(&self) -> impl Iterator<Item = (Priority, PriorityStats)> + '_ {
        stats::by_priority(self.reader())
    }

    /// How many pages of each priority have a frame; priorities without any are left out.
    pub fn pages_by_priority(&self) -> impl Iterator<Item = (Priority, u64)> + '_ {
        self.reader().table().counts().resident_by_priority()
    }

    /// Pages that have a frame.
    pub fn resident_pages(&self) -> u64 {
        self.reader().table().counts().resident() as u64
    }

    #[inline]
    fn reader(&self) -> &PageReader {
        self.reads.reader()
    }

    /// This mapping, for the reactor.
    fn rounds(self: &Arc<Self>) -> Weak<dyn Rounds> {
        Arc::downgrade(self) as Weak<dyn Rounds>
    }
}

/// The reactor keeps no mapping alive between two rounds.
impl Rounds for Mapping {
    fn is_in_flight(&self) -> bool {
        self.reads.is_in_flight()
    }

    fn round(&self, gathers: &mut bool) -> bool {
        self.reads.round(gathers)
    }
}
