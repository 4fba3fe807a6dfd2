//! The levels of a region: a spill goes into the first tree, and trees are merged downwards as they grow
//! (`Kreon 3.2.1`).
//!
//! - [`plan`]: which trees to merge next
//! - [`holds`]: who builds on which trees
//! - [`shape`]: the list of trees between merges
//! - [`merge`], [`overlay`]: adjacent trees to one, beside spills
//! - [`background`]: when it is done, and by whom
//! - [`compact`]: all trees of a region to one, at once

mod background;
mod compact;
mod holds;
mod merge;
mod overlay;
mod plan;
mod shape;

pub use background::MergeWork;
pub use holds::{Hold, Holds, Purpose};
pub use shape::TREES_MAX;
