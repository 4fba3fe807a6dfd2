//! Clients whose whole history is judged.
//!
//! - [`face`]: a cluster as a client sees it; [`keys`]: what lies in it
//! - [`session`]: one client and what it did and saw; [`actions`]: what it can do; [`crowd`]: many of them
//! - [`ledger`]: the history of one range, judged from one moment of [`mod@rest`] to the next

pub mod actions;
pub mod crowd;
pub mod face;
pub mod keys;
pub mod ledger;
#[cfg(test)]
pub mod pretended;
pub mod rest;
pub mod session;
