//! The coordinator as the cluster sees it: a small tree of nodes that are bytes with versions, compare-and-set, watches
//! and elections; and an implementation in the process for tests.
//!
//! Commands and replies are values, so that machines without I/O can ask and be answered, and an explorer can lose,
//! delay and reorder what it likes. What the bytes of a node mean is not known here.
#![forbid(unsafe_code)]

mod candidacy;
mod checked;
mod command;
mod coordinator;
mod election;
pub mod fake;
mod paths;
#[cfg(feature = "zookeeper")]
pub mod zookeeper;

pub use candidacy::{Candidacy, Step};
pub use command::{Command, Mode, Node, Operation, Reply, Version};
pub use coordinator::{CALLS_MAX, CallId, Coordinator, DATA_BYTES_MAX, Event};
pub use election::{Standing, first_of, standing};
pub use paths::Paths;
#[cfg(feature = "zookeeper")]
pub use zookeeper::ZooKeeper;
