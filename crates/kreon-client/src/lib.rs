//! The client of a cluster.
//!
//! [`Cluster`] is its face: tables ([`Region`]) with the calls of the embedded store, batches, scans, snapshots, orders of
//! an operator. Below it is [`Client`], a machine without I/O: `on(now, event, &mut actions)`.
//!
//! `map -> route -> {ok | Moved: read the map anew | Unavailable: wait | Unknown: report}`. The map is what the
//! coordinator says of each group: it may be old, and whoever it names refuses what is not his. A write is sent again
//! only after a server said that it was not appended; otherwise it could land above a later write of another client. What
//! becomes of calls whose primary is replaced meanwhile says [`Client`].
//!
//! Whoever calls sends on the link itself, and whoever waits for an answer receives meanwhile, for all: so an answer wakes
//! one thread. When nobody waits, a thread of the client receives. A second one has the session with the coordinator, and a
//! connection is made by a thread that ends with it.
#![forbid(unsafe_code)]

mod batch;
mod call;
mod cluster;
mod deed;
mod driver;
mod error;
mod event;
mod handle;
mod machine;
mod map;
mod moment;
mod options;
mod orders;
mod parts;
mod pin;
mod range;
mod region;
mod running;
mod scan;
mod seats;
mod session;
mod slot;
mod snapshot;
mod state;
#[cfg(test)]
mod tests;
mod ticket;

pub use batch::WriteBatch;
pub use call::{Attempt, CallId, Kind};
pub use cluster::Cluster;
pub use error::{Error, ErrorKind, Result};
pub use event::{Action, Event, Outcome, Reply};
pub use kreon_fabric::Key;
pub use kreon_wire::{
    Backup, Compared, Durability, GroupConfig, GroupId, Order, ServerId, SplitList, Splits, Stage,
    Standing, Term, Verified,
};
pub use machine::Client;
pub use moment::{Moment, Timing};
pub use options::{ClientOptions, ClusterUrl};
pub use orders::GroupStatus;
pub use range::{KeyBounds, KeyRange};
pub use region::Region;
pub use scan::Scan;
pub use session::Opener;
pub use slot::Value;
pub use snapshot::Snapshot;
pub use ticket::{GetTicket, Ticket};
