//! Servers of Apache ZooKeeper as processes on this machine: for a cluster on one machine, and for tests that kill and
//! freeze them.
//!
//! [`Jars`] are what a server needs: few files of pinned versions and checksums, which Maven brings. A machine without
//! Java, Maven or the network has none, and says so ([`ErrorKind::NotFound`](kreon_base::ErrorKind::NotFound)). An
//! [`Ensemble`] of one or more [`Server`]s listens on the loopback address, unless it is given [`Place`]s.
//! [`prepare`] is for those who keep the process of a server themselves.
#![forbid(unsafe_code)]

mod alone;
mod ask;
mod configuration;
mod ensemble;
mod fetch;
mod jars;
mod pinned;
mod server;

pub use alone::prepare;
pub use ask::{Mode, mode};
pub use configuration::{Place, Settings};
pub use ensemble::Ensemble;
pub use jars::Jars;
pub use server::Server;
