//! The volume: one file or raw device, cut into segments and pages. Floor 3.
//!
//! - [`superblock`]: the four rotating slots that pick the durable epoch
//! - [`creation`]: how a store begins, and what a creation that was cut short looks like
//! - [`remains`]: what is left of stores where no superblock is
//! - [`page_io`]: single pages of the volume's own structures
//! - [`page_runs`]: hands out consecutive pages to a spill
//!
//! The control of space, from the ground; only [`allocator`] knows all of it:
//!
//! - `tuning`: every number that it is tuned by
//! - `purpose`: what an allocation is for
//! - `segment`, `page_bits`: one segment, its pages and its blocks
//! - `segments`: the table of all segments, and what can be found in it
//! - `bitmap`: the durable form of the table, in buddy pairs
//! - `log_segments`: what recovery finds of the log, and how its segments become free
//! - `backing`: growth, backing, and giving space back to the file system
//! - `reserve`: what stays back for spills, deletions and checkpoints
//! - `written`: free segments that were written, for logs
//! - `supply`: hands out segments as far as the reserve allows
//! - `log_room`: how far the log may write its segments
//! - `page_placement`: where pages of trees go
//! - `space`: how the space is used, in figures

#![forbid(unsafe_code)]

pub mod allocator;
mod backing;
mod bitmap;
pub mod creation;
mod log_room;
mod log_segments;
mod occupied;
mod page_bits;
pub mod page_io;
mod page_placement;
pub mod page_runs;
mod purpose;
pub mod remains;
mod reserve;
mod segment;
mod segments;
mod space;
pub mod superblock;
mod supply;
mod tuning;
mod written;

pub use allocator::Allocator;
pub use occupied::{Occupied, OccupiedLog};
pub use page_bits::PageBits;
pub use page_runs::PageRuns;
pub use purpose::Purpose;
pub use reserve::{L0sReserve, Reserve};
pub use segment::Usage;
pub use space::Space;

#[cfg(test)]
mod tests;
