//! Spills: moving L0 into L1 by changing only the leaves that receive entries (`Kreon 3.2.1`).
//!
//! - [`stream`]: the entries of one region of a frozen L0, in order
//! - [`sink`]: fresh pages, through the mapping
//! - [`charges`]: which log segments the changed entries point at
//! - `run`: all regions of one L0

pub mod charges;
mod run;
pub mod sink;
pub mod stream;

pub use run::{LEAF_FILL, Spilled, spill};
