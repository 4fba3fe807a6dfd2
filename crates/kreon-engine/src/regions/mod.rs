//! The regions of a store: named ordered key spaces.
//!
//! - [`region`]: one that exists, and all of them by name
//! - [`own_options`]: the options of one, as its readers and writers see them
//! - [`gaps`]: where a region has no keys, so that scans need not pass dead entries

pub mod gaps;
mod own_options;
mod region;

pub use region::{RegionState, Regions, check_name, check_options};
