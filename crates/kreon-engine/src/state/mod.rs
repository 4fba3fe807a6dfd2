//! The parts of an open store that spills, checkpoints and recovery work on.
//!
//! - [`ledger`]: what the last checkpoint recorded, and what the next one will
//! - [`parts`]: all parts together
//! - [`poison`]: what stops writing after a failure

pub mod ledger;
pub mod parts;
pub mod poison;

pub use ledger::{Ledger, RegionEntry};
pub use parts::Parts;
pub use poison::Poison;
