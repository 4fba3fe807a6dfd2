//! An open store.
//!
//! - [`handle`]: opening, closing, and calls that a subsystem answers; [`work`]: the long ones among these; [`primary`]: those of
//!   the primary of a group
//! - [`subsystems`]: all subsystems of an open store
//! - [`status`]: what it tells other processes of itself
//! - [`forked`]: a store in a forked child

mod forked;
mod handle;
#[cfg(all(test, shuttle))]
mod models;
mod primary;
mod status;
mod subsystems;
mod work;

pub use handle::Engine;
pub use status::STATUS_HEAD;

#[cfg(test)]
mod tests;
