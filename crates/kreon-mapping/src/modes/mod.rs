//! Ways to do the work of the mapping that experiments compare. With the feature `comparison` they can be chosen
//! (`compared`); otherwise all but one are compiled out (`shipped`).

#[cfg(feature = "comparison")]
mod compared;
#[cfg(not(feature = "comparison"))]
mod shipped;

#[cfg(feature = "comparison")]
pub use compared::{Backend, Eviction, KeepRecords, MappingModes, Writeback};
#[cfg(not(feature = "comparison"))]
pub use shipped::MappingModes;

/// Most frames that are evicted for one that is wanted.
pub(crate) const EVICT_BATCH_MAX: usize = 64;
