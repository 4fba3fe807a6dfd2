//! Damage to a volume of Tucana: every sector of it is changed, and the store must tell or be right. It is never wrong, not even
//! where a sector is again what it was before.
//!
//! - `fixture`: volumes with all structures
//! - `judge`: what a store says about damage, and whether it may
//! - `sweep`: all changes

mod fixture;
mod judge;
mod sweep;

pub use sweep::{damage, replay};
