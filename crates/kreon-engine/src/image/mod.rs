//! Images of L0: durable copies of its index, so that an opening replays less of the log (`Kreon 3.4`).
//!
//! An image is a list of *parts*. A part covers a stretch of the log from `start` to `end` in one L0: the newest
//! version before `end` of every key written in the stretch, as one tree per region in the format of the level
//! trees, but with the LSN of every entry. Parts are consecutive, so a new image costs only the writes since the
//! last one, and a spill drops the parts that it covers. The log keeps all records: an image only saves time, and
//! a damaged one is ignored.
//!
//! Why a replay may begin at the `end` of the last part, although writers were active while it was built:
//! - `end` was the log's tail at a moment without writers: all before it was in L0, in whole units.
//! - A key may be missing because it was overwritten behind `end` before the walk reached it. The newer version is
//!   in the log before `needed`, the log's tail after the walk, and the log was durable up to `needed` before the
//!   part was: the replay finds the version with its whole unit.
//! - The part has nothing from behind `end`, so a unit that was partly in L0 comes from the log only.
//!
//! Modules: [`mod@build`] (a part from the entries of its stretch), [`pages`] (the sink of its nodes), [`load`], [`room`] (memory for what
//! an opening puts into L0).

pub mod build;
pub mod load;
pub mod pages;
pub mod room;

pub use build::{Stretch, build};
pub use pages::ImagePages;
