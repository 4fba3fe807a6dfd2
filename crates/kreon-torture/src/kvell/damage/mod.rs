//! Damage to a volume of KVell: every sector of it is changed, and the store must tell or be right.
//!
//! - `fixture`: volumes with all structures
//! - `judge`: what a store says about damage, and whether it may
//! - `sweep`: all changes
//!
//! What cannot be told is a sector that is again what it was before, or blank: a lost write. There is one copy of each item
//! and no log, so nothing else says that there was a newer one. Then a key may have an earlier value or none; never another.

mod fixture;
mod judge;
mod sweep;

pub use sweep::{damage, replay};
