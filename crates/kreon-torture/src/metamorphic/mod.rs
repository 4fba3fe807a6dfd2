//! The same operations under many settings: the answers must be those of a map, whatever the settings.
//!
//! - [`operations`]: what is done, from a seed
//! - [`settings`]: the table of settings
//! - `store`: a store that is opened again with other settings
//! - `seen`: the store as lanes see it
//! - `lane`: what one thread does, and what its answers must be
//! - `transaction`: transactions of a lane
//! - `run`: operations under settings
//! - `shrink`: fewer operations that still fail
mod lane;
pub mod operations;
mod run;
mod seen;
pub mod settings;
mod shrink;
mod store;
mod transaction;

pub use run::{metamorphic, replay};
