//! Atomics, fences, spinning, and the watch over plain memory.
//!
//! Ordinary builds use the standard library. With `--cfg loom` the primitives are loom's, which runs a small model in
//! every interleaving of its threads and with every value that the memory orderings allow a load to see; locks with the
//! interface of `parking_lot`'s, which the other crates use, are added. `cargo xtask interleavings` runs the models.

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

/// Stores into an atomic to which the caller has exclusive access.
pub trait SetAlone<T> {
    /// Sets `value`; costs an ordinary store.
    fn set_alone(&mut self, value: T);
}
