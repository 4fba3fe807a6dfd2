//! The stores that are measured, behind one face.

mod face;
mod kind;
pub mod kreon;
mod kvell;
mod nothing;
pub mod planted;
mod raw;
pub mod told;
mod tucana;
pub mod tuning;
pub mod version;
mod watched;

#[cfg(feature = "bf-tree")]
mod bftree;
#[cfg(feature = "fjall")]
mod fjall;
#[cfg(feature = "lmdb")]
mod lmdb;
#[cfg(feature = "redb")]
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
#[cfg(feature = "wiredtiger")]
mod wiredtiger;

#[cfg(test)]
mod conformance;

pub use face::{Asked, Engine, Inside, Searches};
pub use kind::Kind;
