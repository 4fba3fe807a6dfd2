//! What a mapping is opened with, and how its memory is divided.

use kreon_base::{PageBytes, PageNo, Priority, Result};

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
    /// Share of the frames that may be dirty before the threads that make pages fresh must write
    /// some back, in percent, 1 to 90.
    pub dirty_share_percent: u8,
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
            dirty_share_percent: 50,
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
