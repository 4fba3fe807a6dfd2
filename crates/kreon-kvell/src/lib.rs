//! KVell: a persistent key-value store that shares nothing between its partitions, sorts nothing on the device and has
//! no log (Lepers et al., "KVell: the Design and Implementation of a Fast Persistent Key-Value Store", SOSP 2019).
//! Floor 5, beside `kreon-engine`.
//!
//! - [`format`]: all that is persisted, as bytes

#![forbid(unsafe_code)]

pub mod format;

