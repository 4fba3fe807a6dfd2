//! Garbage collection of the value log (`Kreon 3.2.5`): what is to be moved, and the copies.
//!
//! - [`victims`]: which segments are worth the work
//! - [`candidates`]: their records, and others that somebody wants moved
//! - [`judge`]: which of them a tree points at
//! - [`mod@copy`]: into the stream of moved records
//!
//! Here nothing is shown to readers: the engine puts what was copied into L0'.

pub mod candidates;
pub mod copy;
pub mod judge;
pub mod victims;

pub use candidates::Candidates;
pub use copy::{Copied, copy};
pub use judge::{Judged, judge};
pub use victims::{Rules, Victim, choose};
