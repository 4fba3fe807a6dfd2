//! What a reader holds: the immutable set of levels, and views of it.
//!
//! - [`get_counts`]: what gets cost at the device
//! - [`levels`]: the level trees of all regions at one moment
//! - [`memory`]: the level in memory, an index of keys and the deleted ranges beside it
//! - [`view`]: L0', L0 and the levels together; how long old pages must stay
//! - [`source`]: nodes and log pages through the mapping
//! - [`log_space`]: segments for the log

pub mod get_counts;
pub mod levels;
pub mod log_space;
pub mod memory;
pub mod source;
pub mod view;

pub use get_counts::{GetCounts, GetStats};
pub use levels::{Curtain, Levels};
pub use log_space::VolumeSpace;
pub use memory::Memory;
pub use source::{MappedLog, MappedNodes};
pub use view::{Frozen, View, Views};
