//! Locks and counts that all threads write to: what bounds the throughput of many cores.
//!
//! With the feature `lock-times` each tells how long and how often it is held or written (`timed`); without it, each is
//! a mutex or an atomic and nothing else (`plain`).

#[cfg(not(feature = "lock-times"))]
mod plain;
#[cfg(feature = "lock-times")]
mod timed;
#[cfg(feature = "lock-times")]
mod times;

#[cfg(not(feature = "lock-times"))]
pub(crate) use plain::*;
#[cfg(feature = "lock-times")]
pub(crate) use timed::*;
#[cfg(feature = "lock-times")]
pub use times::{CountWrites, LockTimes, clock_ticks, hold_cost_ticks};
#[cfg(feature = "lock-times")]
pub(crate) use times::{count_writes, lock_times};
