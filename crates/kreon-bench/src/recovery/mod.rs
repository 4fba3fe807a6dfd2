//! `kreon-bench recovery`: how long a store takes to open after its process was killed, beside what the device could
//! read meanwhile.

pub mod child;
mod command;
mod sequential;

pub use command::{Results, Settings, run, table};
