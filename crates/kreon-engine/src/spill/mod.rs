//! Spills: the merge of L0 into L1, which rewrites only the leaves with new entries (`Kreon 3.2.1`).
//!
//! - [`stream`]: the entries of one region of a frozen L0, in order
//! - [`sink`]: fresh pages, through the mapping
//! - [`charges`]: the change of live bytes by log segment
//! - [`progress`]: the share of keys that a spill has merged
//! - `notes`: the reports of tree merges
//! - `erase`: deleted ranges in the trees below the first
//! - `run`: all regions of one L0
//! - `workers`: one region, by several threads

pub mod charges;
mod erase;
mod notes;
pub mod progress;
mod run;
pub mod sink;
pub mod stream;
mod workers;

pub use erase::Erasing;
pub use notes::Notes;
pub use progress::Progress;
pub use run::{LEAF_FILL, Orders, Spilled, spill};
