//! Spills: moving L0 into L1 by changing only the leaves that receive entries (`Kreon 3.2.1`).
//!
//! - [`stream`]: the entries of one region of a frozen L0, in order
//! - [`sink`]: fresh pages, through the mapping
//! - [`charges`]: which log segments the changed entries point at
//! - [`progress`]: how far a spill has come
//! - `erase`: deleted ranges in the trees beneath the first
//! - `run`: all regions of one L0
//! - `workers`: one region, by several threads

pub mod charges;
mod erase;
pub mod progress;
mod run;
pub mod sink;
pub mod stream;
mod workers;

pub use erase::Erasing;
pub use progress::Progress;
pub use run::{LEAF_FILL, Orders, Spilled, spill};
