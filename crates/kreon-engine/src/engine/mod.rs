//! An open store.
//!
//! - [`handle`]: opening, closing, and calls that a subsystem answers; [`work`]: the long ones among these
//! - [`subsystems`]: all subsystems of an open store
//! - [`forked`]: a store in a forked child

mod forked;
mod handle;
#[cfg(all(test, shuttle))]
mod models;
mod subsystems;
mod work;

pub use handle::Engine;

#[cfg(test)]
mod tests;
