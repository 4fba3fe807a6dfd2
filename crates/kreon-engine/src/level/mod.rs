//! Levels and views: the immutable set of levels, the in-memory levels above it, and the view of both for readers.
//!
//! - [`get_counts`]: device reads of gets
//! - [`levels`]: the trees of all regions at one moment
//! - [`memory`]: an in-memory level: index of keys and deleted ranges
//! - [`view`]: L0', L0 and the levels together; the lifetime of retired pages
//! - [`scale`]: target sizes of levels, and the choice of merges
//! - [`source`], [`log_source`]: nodes and log pages through the mapping
//! - [`resident`]: nodes in memory, for reads that must not block; [`resident_log`]: log pages in frames
//! - [`log_space`]: segments for the log

pub mod get_counts;
pub mod levels;
pub mod log_source;
pub mod log_space;
pub mod memory;
pub mod resident;
pub mod resident_log;
pub mod scale;
pub mod source;
pub mod view;

pub use get_counts::{GetCounts, GetStats};
pub use levels::{Levels, VisibleFrom};
pub use log_source::{KeptLog, MappedLog};
pub use log_space::VolumeSpace;
pub use memory::Memory;
pub use resident::ResidentNodes;
pub use resident_log::ResidentLog;
pub use source::MappedNodes;
pub use view::{Frozen, PagesKept, View, Views};
