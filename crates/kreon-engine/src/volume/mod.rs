//! The volume: one file or raw device, cut into segments and pages.
//!
//! - [`superblock`]: the four rotating slots that pick the durable epoch
//! - [`creation`]: how a store begins, and what a creation that was cut short looks like
//! - [`remains`]: what is left of stores where no superblock is
//! - [`allocator`]: which segments and pages are in use, as the store sees it now
//! - [`free_space`]: backing, growth, and giving space back to the file system
//! - [`reserve`]: what stays back for spills, deletions and checkpoints
//! - [`log_room`]: what of its segments the log may write
//! - [`log_segments`]: what recovery finds of the log, and how its segments become free
//! - [`packing`]: pages for trees that are made anew, apart from all others
//! - [`page_runs`]: hands out consecutive pages to a spill
//! - [`written`]: free segments that were written, for logs
//! - [`bitmap`]: the allocator's durable form, in buddy pairs

pub mod allocator;
pub mod bitmap;
pub mod creation;
pub mod free_space;
mod log_room;
mod log_segments;
pub mod packing;
mod page_bits;
pub mod page_io;
pub mod page_runs;
pub mod remains;
pub mod reserve;
pub mod superblock;
pub mod written;

pub use allocator::{Allocator, Purpose};
pub use free_space::Space;
pub use page_runs::PageRuns;
pub use reserve::{L0sReserve, Reserve};

fn is_out_of_space(error: &kreon_base::Error) -> bool {
    error.kind() == kreon_base::ErrorKind::OutOfSpace
}

#[cfg(test)]
mod tests;
