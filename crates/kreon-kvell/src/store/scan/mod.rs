//! Scans: the pairs of a range in order, from both ends. From the ground:
//!
//! - `bounds`: what is left of the range
//! - `source`: the index of a partition, in order
//! - `merge`: the indexes of all partitions, in order
//! - `known`: keys in order, with those that look alike in the index
//! - `ahead`: values on their way
//! - `side`: one end of a scan
//! - `pairs`: the handles

mod ahead;
mod bounds;
mod known;
mod merge;
mod pairs;
mod side;
mod source;

pub use bounds::Bounds;
pub use pairs::{Keys, Scan};
