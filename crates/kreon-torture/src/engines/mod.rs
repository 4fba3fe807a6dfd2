//! Hunts in the engines KVell and Tucana. What is particular to an engine stands in its own module, `kvell` or `tucana`.
//!
//! - `engine`: what the hunts need of a store
//! - `faults`: every single failure of the device
//! - `damage`: changes of every sector
//! - `history`: concurrent `clients`, and whether what they saw can be explained; `neighbours`: writers beside them
//! - `crash`: processes that are killed
//! - `prefix`: how many changes of one thread a store has kept
//! - `arguments`: the command

mod arguments;
mod clients;
pub(crate) mod crash;
pub(crate) mod damage;
mod engine;
pub(crate) mod faults;
pub(crate) mod history;
mod neighbours;
mod prefix;

pub use arguments::Arguments;
pub(crate) use clients::{Shared, World, seen};
pub(crate) use crash::Killed;
pub(crate) use damage::Damaged;
pub(crate) use engine::{Cut, Durability, Engine, HadOne};
pub(crate) use faults::Scripted;
pub(crate) use prefix::changes_kept;
