//! `kreon-bench mapping`: what each part of the mapping is worth. One store is loaded, then opened with one part
//! changed at a time (the ablations of `FastMap 4.4` and `Kreon 4.2`).

pub mod child;
mod command;
mod micro;
mod results;
mod settings;
mod table;
mod variants;

pub use command::run;
pub use settings::Settings;
