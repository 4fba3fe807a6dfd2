//! KVell: a persistent key-value store that shares nothing between its partitions, sorts nothing on the device and has
//! no log (Lepers et al., "KVell: the Design and Implementation of a Fast Persistent Key-Value Store", SOSP 2019).
//! Floor 5, beside `kreon-engine`.
//!
//! - [`mod@format`]: all that is persisted, as bytes
//! - `number_hash`: tables of numbers
//! - `index`: the keys of a partition in memory, in order, with the place of each item
//! - `cache`: cells of the device in memory
//! - `space`: extents and slots
//! - [`partition`]: a state machine for the keys of one share of the hash values
//! - [`opening`]: creation and recovery
//! - [`verify`]: whether the device has what the partitions know
//! - `store`: partitions with workers, and handles

#![forbid(unsafe_code)]

// Public for the torture, which drives partitions on a simulated device; no part of the interface of the engine.
#[doc(hidden)]
pub mod cache;
pub mod format;
#[doc(hidden)]
pub mod index;
mod number_hash;
#[doc(hidden)]
pub mod opening;
#[doc(hidden)]
pub mod partition;
#[doc(hidden)]
pub mod space;
mod store;
#[doc(hidden)]
pub mod verify;

pub use kreon_base::{Error, ErrorKind, KeyRange, Result};
pub use kreon_device::{DeviceStats, TransferStats};
pub use partition::Durability;
pub use store::{Answer, Keys, Options, Region, Scan, Stats, Store};
pub use verify::{Damage, VerifyReport};
