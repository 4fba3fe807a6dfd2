//! `kreon-bench share`: the share of the device's own rate that a store reaches, where data do not fit in memory (`KVell 6.3`).
//!
//! Slices of the store's workload and of bare transfers alternate: a machine that is shared with others changes its speed
//! within seconds. Bare are as many reads, writes and flushes of the same sizes as the store has just made, with as many in
//! flight as the store had requests. So a share is the time of these over that of the store.

mod cell;
mod command;
mod plan;
mod raw;
mod requests;
mod table;

pub use command::{Settings, run};
