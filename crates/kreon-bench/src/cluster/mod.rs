//! `kreon-bench cluster`: puts and gets over the network with several copies of everything, one at a time and many under
//! way, beside Redis with a replica.
//!
//! All servers are started here, as processes of this machine with empty folders, and end with this. Stores take turns.
//! This process is the client of each and does nothing else; the processor time of servers is that of their processes.

mod command;
mod kreon;
mod measure;
mod nodes;
mod processes;
#[cfg(feature = "redis")]
mod redis;
mod store;
mod table;

pub use command::{Settings, run};
