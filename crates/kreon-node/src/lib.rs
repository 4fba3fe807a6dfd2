//! A server of a cluster as a library: one process that holds the replicas of its groups, serves clients, and is a candidate
//! for the office of the master.
//!
//! - [`NodeSettings`], [`Node`]: a server, from start to end; [`NodeStatus`]: how it stands
//! - [`layout`]: what a new cluster consists of, as the coordinator has it
//! - [`Talk`]: commands to the coordinator, one after the other
#![forbid(unsafe_code)]

mod answer;
mod client;
mod compare;
mod holding;
mod hosted;
pub mod layout;
mod mark;
mod node;
mod orders;
mod parts;
mod pool;
mod settings;
mod status;
mod talk;
mod telling;
mod watcher;

pub use mark::{MARK, Mark};
pub use node::Node;
pub use orders::limits_path;
pub use settings::{ClientLimits, Coordination, NodeSettings};
pub use status::{
    BarrierTimes, ClientStatus, GroupStatus, MemberStatus, NodeStatus, StreamTraffic, Traffic,
};
pub use talk::Talk;
