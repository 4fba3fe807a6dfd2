//! The volume: one file or raw device, cut into segments and pages.
//!
//! - [`superblock`]: the four rotating slots that pick the durable epoch
//! - [`creation`]: how a store begins, and what a creation that was cut short looks like
//! - [`remains`]: what is left of stores where no superblock is
//! - [`allocator`]: which segments and pages are in use, as the store sees it now
//! - [`free_space`]: backing, growth and the reserve for spills, deletes and checkpoints
//! - [`page_runs`]: hands out consecutive pages to a spill
//! - [`written`]: free segments that were written, for logs
//! - [`bitmap`]: the allocator's durable form, in buddy pairs

pub mod allocator;
pub mod bitmap;
pub mod creation;
pub mod free_space;
mod log_segments;
mod page_bits;
pub mod page_io;
pub mod page_runs;
pub mod remains;
pub mod superblock;
pub mod written;

pub use allocator::{Allocator, Purpose, Usage};
pub use free_space::Space;
pub use page_runs::PageRuns;

#[cfg(test)]
mod tests;
