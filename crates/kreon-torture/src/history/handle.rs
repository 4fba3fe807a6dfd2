//! A region of the store that clients share, and the registers that its keys, its end and its name are in a history.

use std::sync::Arc;

use kreon_base::RegionId;
use kreon_engine::RegionState;
use kreon_judge::{Register, Version};

/// A region and whether it may be dropped meanwhile.
#[derive(Clone)]
pub struct Handle {
    /// The region.
    pub region: Arc<RegionState>,
    /// Whether somebody may drop it.
    pub may_go: bool,
}

impl Handle {
    /// The register of a key.
    pub fn register(&self, key: usize) -> Register {
        u64::from(self.region.id.0) << 32 | key as u64
    }

    /// The register that holds something once the region is dropped.
    pub fn mark(&self) -> Register {
        u64::from(self.region.id.0) << 32 | u64::from(u32::MAX)
    }
}

/// The register of a name of a region: which region is called so.
pub fn name_register(number: u32) -> Register {
    u64::from(u32::MAX) << 32 | u64::from(number)
}

/// What stands in the register of a name.
pub fn name_version(region: RegionId) -> Version {
    u64::from(region.0)
}
