//! The store: partitions with workers, and handles. From the ground:
//!
//! - `options`: what a store is opened with
//! - `stats`: figures of a store
//! - `refusals`: why a store does not do what it is asked
//! - `call`: requests of one caller, and the wait for their replies
//! - `answer`: replies that come later
//! - `bell`: how a worker sleeps, and is woken
//! - `flights`: transfers of several partitions in one queue
//! - `shared_partition`: a partition that callers and its worker share
//! - `shared`: what handles and workers have in common
//! - `worker`: does all I/O of its partitions
//! - `post`: who does the work of a worker, its thread or one that drives a future
//! - `running`: the workers, from the opening to the close
//! - `handle`: what all handles hold
//! - `scan`: pairs in order
//! - `region`, `face`, `regions`: the handles
//! - `verifying`: the store as it is verified

mod answer;
mod bell;
mod call;
mod face;
mod flights;
mod handle;
mod options;
mod post;
mod refusals;
mod region;
mod regions;
mod running;
mod scan;
mod shared;
mod shared_partition;
mod stats;
#[cfg(test)]
mod tests;
mod verifying;
mod worker;

pub use answer::Answer;
pub use face::Store;
pub use options::Options;
pub use region::Region;
pub use scan::{Keys, Scan};
pub use stats::Stats;
