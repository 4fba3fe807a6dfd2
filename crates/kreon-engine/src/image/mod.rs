//! Images of L0: what an opening would otherwise replay from the log (`Kreon 3.4`).
//!
//! An image is a list of *parts*. A part has, of one L0 and of a stretch of the log from `start` to `end`,
//! the newest version before `end` of every key that was written in the stretch, as a tree for each region
//! in the format of the level trees, but with the LSN of every entry. The parts follow one another, so a new
//! image costs what was written since the last one, and a spill of L0 drops the parts that it makes
//! superfluous. The log keeps it all: an image only saves time, and one that is damaged is passed over.
//!
//! Why an opening may begin its replay at the `end` of the last part, although writers went on while the part
//! was written:
//! - `end` was the log's tail at a moment without writers: all before it was in L0, in whole units.
//! - A key that is missing, because it was written again behind `end` before the walk came to it, has that
//!   newer version in the log before `needed`, the log's tail after the walk. The log was durable up to
//!   `needed` before the part was: the replay finds it, and all of its unit.
//! - Nothing from behind `end` is in the part: what was half in L0 then comes from the log alone.
//!
//! Modules: [`stretch`] (the entries of a part), [`pages`] (where its nodes go), [`build`], [`load`].

pub mod build;
pub mod load;
pub mod pages;
pub mod stretch;

pub use build::{Stretch, build};
pub use pages::ImagePages;
