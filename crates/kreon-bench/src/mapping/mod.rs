//! `kreon-bench mapping`: what each part of the mapping is worth. One store is loaded, then opened with one part
//! changed at a time (the ablations of `FastMap 4.4` and `Kreon 4.2`).

pub mod child;
mod command;
#[cfg(feature = "lock-times")]
mod demands;
#[cfg(not(feature = "lock-times"))]
#[path = "no_demands.rs"]
mod demands;
mod experiments;
mod inserts;
mod micro;
mod piece;
mod pieces;
mod process;
mod ram;
mod results;
mod settings;
mod table;
mod variants;

pub use command::run;
pub use settings::Settings;
