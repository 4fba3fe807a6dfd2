//! The face of a cluster against small servers in the process, which lose answers, refuse, move groups and close links.
#![allow(missing_docs)]

mod calls;
mod losses;
mod many;
mod orders;
mod scans;
mod server;
mod world;
