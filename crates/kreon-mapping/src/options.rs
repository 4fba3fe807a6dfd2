//! What a mapping is opened with, and how its memory is divided.

use kreon_base::{PageBytes, PageNo, Priority, Result};
use kreon_device::{Backing, MapAdvice};

/// What a mapping is opened with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappingOptions {
    /// All memory that the mapping may use: frames, their records and the page table, in bytes.
    pub memory_bytes: usize,
    /// The longest that the volume may become, in bytes. Costs address space only.
    pub volume_bytes_max: u64,
    /// Locks that the state of the pages is spread over. 0: chosen by the number of processors.
    pub shards: usize,
    /// Whether to ask for 2 MiB pages for the frames. Where there are none, 4 KiB ones serve.
    pub huge_pages: bool,
    /// When the frames get their memory. Sparse memory has no huge pages, and a first touch of a frame may find none.
    pub backing: Backing,
    /// Share of the frames that may be dirty before the threads that make pages fresh must write
    /// some back, in percent, 1 to 90.
    pub dirty_share_percent: u8,
    /// How it goes about its work, for comparisons.
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

/// Ways to go about the work that experiments compare. The default is what measured best; nobody needs
/// another for anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappingModes {
    /// Where clean pages are read.
    pub backend: Backend,
    /// Whether single records that [`with_bytes`](crate::Mapping::with_bytes) reads are kept, without the
    /// pages around them.
    pub records: KeepRecords,
    /// Who goes first.
    pub eviction: Eviction,
    /// In which order dirty pages are written.
    pub writeback: Writeback,
    /// Most transfers of a prefetch or a writeback that are in flight at once, at least 1: one after the other.
    pub depth_max: usize,
}

/// Where clean pages are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// In frames.
    #[default]
    Pool,
    /// In the page cache, through the kernel's mapping of the volume. The device must not use direct I/O. Frames
    /// hold dirty pages only, and get an eighth of the memory; the rest is left to the page cache. The modes of
    /// reading below do not matter then.
    Mmap(MapAdvice),
}

/// When records are kept by themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeepRecords {
    /// Pages only.
    Never,
    /// When free frames are few. As long as they are plenty, pages are kept: that one is resident costs no
    /// lock and no copy to learn.
    #[default]
    Scarce,
    /// Also while frames are plenty.
    Always,
}

/// Which pages are evicted first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Eviction {
    /// Those of the highest priority number; among them the oldest.
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
    /// A transfer for each, in no order.
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

/// A page that a reader wants.
#[derive(Clone, Copy)]
pub struct PageRequest<'a> {
    /// Which page.
    pub page: PageNo,
    /// Eviction priority that the page gets if it has to be loaded: the higher, the sooner evicted.
    pub priority: Priority,
    /// Whether the bytes are what they should be. Runs once, when the page comes from the device,
    /// before anybody sees it; what it returns as an error, the reader gets. It must not use the
    /// mapping.
    pub check: &'a (dyn Fn(&PageBytes) -> Result<()> + Sync),
}
