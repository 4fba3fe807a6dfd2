//! What threads meet in: atomics, fences, waiting, and the watch over plain memory.
//!
//! In every ordinary build these are the standard library's. With `--cfg loom` they are those of a tool
//! that runs a small model in every interleaving of its threads, and with every value that the
//! orderings of the atomics allow a load to see; then there are locks, too, of the shape of
//! `parking_lot`'s, which the crates above use otherwise. `cargo xtask interleavings` runs the models.

#[cfg(loom)]
mod loomed;
#[cfg(not(loom))]
mod native;
mod watch;

#[cfg(loom)]
pub use loomed::*;
#[cfg(not(loom))]
pub use native::*;
pub use std::sync::atomic::Ordering;
pub use watch::Watch;

/// Setting an atomic that nobody else can see just now.
pub trait SetAlone<T> {
    /// Puts `value`; costs an ordinary store.
    fn set_alone(&mut self, value: T);
}
