//! Levels and views: the immutable set of levels, the in-memory levels above it, and the view of both that readers hold.
//!
//! - [`get_counts`]: reads of gets at the device
//! - [`levels`]: the level trees of all regions at one moment
//! - [`memory`]: the level in memory, an index of keys and the deleted ranges beside it
//! - [`view`]: L0', L0 and the levels together; how long old pages must stay
//! - [`scale`]: how large levels are, and which to merge next
//! - [`source`]: nodes and log pages through the mapping
//! - [`log_space`]: segments for the log

pub mod get_counts;
pub mod levels;
pub mod log_space;
pub mod memory;
pub mod resident;
pub mod scale;
pub mod source;
pub mod view;

pub use get_counts::{GetCounts, GetStats};
pub use levels::{Levels, VisibleFrom};
pub use log_space::VolumeSpace;
pub use memory::Memory;
pub use resident::ResidentNodes;
pub use source::{MappedLog, MappedNodes};
pub use view::{Frozen, View, Views};
