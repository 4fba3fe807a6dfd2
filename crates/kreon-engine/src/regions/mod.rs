//! The regions of a store: named ordered key spaces.
//!
//! - [`region`]: one that exists, and all of them by name
//! - [`gaps`]: where a region has no keys, so that scans need not pass dead entries

pub mod gaps;
mod region;

pub use region::{RegionState, Regions, check_name};
