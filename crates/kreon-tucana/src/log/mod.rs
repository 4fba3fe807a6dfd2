//! Where keys and values are: an append-only log, behind the few calls that the tree needs (`Tucana 2.2.1`).
//!
//! - `record_log`: those calls
//! - `memory_log`: a log in memory, which nothing survives: for tests of the tree

mod memory_log;
mod record_log;

pub use memory_log::MemoryLog;
pub use record_log::{Placed, Record, RecordLog};
