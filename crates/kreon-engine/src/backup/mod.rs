//! Backups of an open store into a folder, and stores made of them.
//!
//! A backup is a manifest, and data files that it shares with the backups before it: a page or a stretch of log that one
//! of them has is not copied again. What it has is what a crash at its moment would have left: the state of the last
//! checkpoint, and the durable log behind.
//!
//! - [`shelf`]: the folder, by names
//! - [`pace`]: progress, rate, and when to give up
//! - [`moment`]: what the state is, held until all of it was copied
//! - [`data`]: the data file that this run writes
//! - [`pages`]: the pages of catalogue, bitmap and trees
//! - [`lineage`]: whether the log goes on from the backup before
//! - [`log`]: the segments of the logs
//! - [`run`]: one backup, from start to end
//! - [`kept`]: the backups of a folder; which parts of data files still count
//! - [`restore`]: a volume of a backup, or a look at every byte of one

mod data;
mod kept;
mod lineage;
mod log;
mod moment;
mod pace;
mod pages;
mod restore;
mod run;
mod shelf;

pub use kept::{BackupInfo, list};
pub use restore::{Restored, check, restore};
pub use run::{BackupOptions, BackupReport, Backups};
pub use shelf::{Access, Shelf};

/// Told how far a backup or restore has come, in bytes; its error ends the work and is returned.
pub type Tell<'a> = &'a mut dyn FnMut(crate::progress::Progress) -> kreon_base::Result<()>;
