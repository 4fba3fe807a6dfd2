//! A replicated store: the primary ships what it writes, backups apply it to a byte-identical volume and
//! never compact.
#![forbid(unsafe_code)]

mod blank;
mod blocks;
pub mod drive;
pub mod equalise;
pub mod files;
pub mod follower;
pub mod machine;
pub mod mirror;
pub mod resync;
