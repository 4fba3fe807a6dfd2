//! Histories of concurrent clients on a real store with background work, and their judgement.
//!
//! - [`call`]: what clients did and saw
//! - [`dense`], [`frontier`], [`judge`]: whether there is an order that explains it
pub mod call;
pub mod dense;
pub mod frontier;
pub mod judge;

pub use call::{Call, History, Register, Seen, State, Verdict, Version, Violation};
pub use judge::judge;
