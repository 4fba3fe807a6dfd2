//! What threads meet in: atomics, locks, waiting.
//!
//! In every ordinary build these are the standard library's and `parking_lot`'s. With `--cfg shuttle`
//! they are those of a tool that runs models under random schedules, a step of one thread at a time;
//! all else (the crates below, `ArcSwap`) is one step then. `cargo xtask interleavings` runs the
//! models.

#![forbid(unsafe_code)]

mod ranked;
#[cfg(shuttle)]
mod shuttled;
mod wakeup;

#[cfg(not(shuttle))]
pub use parking_lot::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use ranked::{Held, Rank, RankedGuard, RankedMutex};
#[cfg(shuttle)]
pub use shuttled::*;
pub use std::sync::atomic::Ordering;
#[cfg(not(shuttle))]
pub use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
#[cfg(not(shuttle))]
pub use std::thread::{sleep, yield_now};
pub use wakeup::Wakeup;
