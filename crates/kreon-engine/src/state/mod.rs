//! The parts of an open store that spills, checkpoints and recovery work on.
//!
//! - [`ledger`]: what the last checkpoint recorded, and what the next one will
//! - [`made`]: regions that the log has and no checkpoint yet
//! - [`parts`]: all parts together
//! - [`poison`]: what stops writing after a failure

pub mod ledger;
pub mod made;
pub mod parts;
pub mod poison;

pub use ledger::{Ledger, RegionEntry, WrittenChunk, WrittenRegions};
pub use made::{MadeRegion, MadeRegions};
pub use parts::Parts;
pub use poison::Poison;
