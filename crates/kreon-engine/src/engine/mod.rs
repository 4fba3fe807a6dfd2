//! An open store.
//!
//! - [`handle`]: opening, closing, and calls that a subsystem answers; [`work`]: the long ones among these
//! - [`subsystems`]: all subsystems of an open store
//! - [`replayed`]: inserts replayed records into L0
//! - [`forked`]: a store in a forked child

mod forked;
mod handle;
#[cfg(all(test, shuttle))]
mod models;
mod replayed;
mod subsystems;
mod work;

pub use handle::Engine;

#[cfg(test)]
mod tests;
