//! The mapping over a device in DRAM beside the kernel's mapping of memory: what is left when the device costs nothing.
//!
//! - `device`: a device in the memory of the process; `disk`: a block device and a file in the memory of the system
//! - `pool`, `mapped`: hits, misses, and pages with new content, by each way
//! - `leaves`: what eviction by priority saves; `sparse`: writeback of pages that lie apart

pub mod device;
pub mod disk;
pub mod leaves;
pub mod mapped;
pub mod pool;
pub mod sparse;

use serde::{Deserialize, Serialize};

/// Pages of the device: 512 MiB, far more than a processor caches.
pub const PAGES: u64 = 1 << 17;

/// Memory where evictions are part of the price: an eighth of the pages.
pub const EVICTING_BYTES: u64 = 64 << 20;

/// What threads do, each with pages of its own, in no order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Work {
    /// Read resident pages.
    Hit,
    /// Read absent pages; there is memory for all.
    Miss,
    /// Read absent pages; each needs another's memory.
    MissEvict,
    /// Give pages new content; nothing is written back.
    Fresh,
    /// Give pages new content; each needs the memory of another that has to be written back.
    FreshEvict,
    /// Write back pages that have new content.
    Writeback,
    /// Read short records again and again that are spread over more pages than fit.
    Records,
}

impl Work {
    /// What it is called in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Miss => "miss",
            Self::MissEvict => "miss, evicting",
            Self::Fresh => "new content",
            Self::FreshEvict => "new content, evicting",
            Self::Writeback => "writeback",
            Self::Records => "record hit",
        }
    }

    /// Pages that are touched before the measurement: then the memory is full.
    pub const fn warm_pages(self) -> u64 {
        match self {
            Self::MissEvict | Self::FreshEvict => PAGES / 4,
            _ => 0,
        }
    }
}
