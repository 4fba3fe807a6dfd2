//! The levels of a region: a spill goes into the first tree, and trees are merged downwards as they grow
//! (`Kreon 3.2.1`).
//!
//! Two threads merge, so that short merges of upper levels go on beside a long one further down. While both are busy the
//! first tree still takes spills: it grows over its size, spills become dearer and throttle writers, and the number of
//! trees stays the same.
//!
//! - [`merger`], [`overlay`]: adjacent trees into one, beside spills

mod merger;
mod overlay;

pub use merger::{Job, Merger};
