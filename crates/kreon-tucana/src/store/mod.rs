//! A tree on a volume: its log, its pages, its commits, its opening.
//!
//! - `home`: the volume as the parts see it
//! - `log_buffer`: a segment of the log in memory; `volume_log`: the log
//! - `volume_pages`: pages for nodes
//! - `superblocks`: the four slots; `catalogue`: what a superblock leads to
//! - `commit`: how a state becomes durable
//! - `opening`: how a store begins, and begins again
//! - `store`: the face of it all; `file`: a store in a file

mod catalogue;
mod commit;
mod file;
mod home;
mod log_buffer;
mod opening;
#[expect(clippy::module_inception, reason = "the file is the store itself")]
mod store;
mod superblocks;
mod volume_log;
mod volume_pages;

pub use file::Creation;
pub use opening::Options;
pub use store::{Store, StoreScan, StoreSnapshot};
