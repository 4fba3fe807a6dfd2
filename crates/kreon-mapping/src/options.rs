//! The options of a mapping, and requests for pages.

use kreon_base::{PageBytes, PageNo, Priority, Result};
use kreon_device::Backing;

use crate::modes::MappingModes;

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
    /// Variants of its work; only the feature `comparison` has more than one.
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
