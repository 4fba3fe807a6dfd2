//! The options of a mapping, and requests for pages.

use kreon_base::{PageBytes, PageNo, Priority, Result};
use kreon_device::{Backing, MapAdvice};

/// Options of a mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappingOptions {
    /// All memory that the mapping may use, in bytes: frames, their descriptors, the page array and the tables of single
    /// records.
    pub memory_bytes: usize,
    /// The maximum length of the volume, in bytes. Costs address space only.
    pub volume_bytes_max: u64,
    /// Locks over which the state of the pages is spread. 0: chosen by the number of processors.
    pub shards: usize,
    /// Whether to ask for 2 MiB pages for the frames. If the system has none, the frames get 4 KiB pages.
    pub huge_pages: bool,
    /// When the frames get their memory. Sparse memory has no huge pages, and the first touch of a frame fails if the
    /// system has no memory left.
    pub backing: Backing,
    /// Share of the frames that may be dirty, in percent, 1 to 90. Over it, the threads that make pages fresh write some
    /// back.
    pub dirty_share_percent: u8,
    /// Variants of its work, for comparisons.
    pub modes: MappingModes,
}

impl MappingOptions {
    /// Options with the usual choices: shards by the number of processors, huge pages, half of the
    /// frames dirty at most.
    pub fn new(memory_bytes: usize, volume_bytes_max: u64) -> Self {
        Self {
            memory_bytes,
            volume_bytes_max,
            shards: 0,
            huge_pages: true,
            backing: Backing::Ahead,
            dirty_share_percent: 50,
            modes: MappingModes::default(),
        }
    }
}

/// Variants that experiments compare. The default measured best; the others have no other use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappingModes {
    /// Where clean pages are read.
    pub backend: Backend,
    /// When single records are kept without the pages around them.
    pub records: KeepRecords,
    /// Which pages are evicted first.
    pub eviction: Eviction,
    /// How dirty pages become transfers.
    pub writeback: Writeback,
    /// Most transfers of a prefetch or a writeback in flight at once. 1: one after the other.
    pub depth_max: usize,
}

/// Where clean pages are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// In frames.
    #[default]
    Pool,
    /// In the page cache, through the kernel's mapping of the volume. The device must not use direct I/O. Frames hold
    /// dirty pages only, in an eighth of the memory; the rest is left to the page cache. No single records are
    /// kept.
    Mmap(MapAdvice),
}

/// When records are kept by themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeepRecords {
    /// Pages only.
    Never,
    /// When free frames are few. While they are plenty, whole pages are kept: a resident page is found without a lock and
    /// read without a copy.
    #[default]
    Scarce,
    /// Also while frames are plenty.
    Always,
}

/// Which pages are evicted first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Eviction {
    /// The oldest of the highest priority number.
    #[default]
    Priority,
    /// The oldest, whatever their priority.
    Fifo,
}

/// How dirty pages become transfers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Writeback {
    /// Sorted, neighbours in one transfer.
    #[default]
    Merged,
    /// Sorted, a transfer for each.
    Sorted,
    /// In no order, a transfer for each.
    Unsorted,
}

impl Default for MappingModes {
    fn default() -> Self {
        Self {
            backend: Backend::default(),
            records: KeepRecords::default(),
            eviction: Eviction::default(),
            writeback: Writeback::default(),
            depth_max: usize::MAX,
        }
    }
}

/// A request for a page.
#[derive(Clone, Copy)]
pub struct PageRequest<'a> {
    /// Which page.
    pub page: PageNo,
    /// Eviction priority of the page if it has to be loaded: the higher, the sooner evicted.
    pub priority: Priority,
    /// Verifies the bytes. Runs once, when the page comes from the device and before any reader sees it; the reader gets
    /// its error. It must not use the mapping.
    pub check: &'a (dyn Fn(&PageBytes) -> Result<()> + Sync),
}
