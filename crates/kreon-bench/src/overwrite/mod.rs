//! `kreon-bench overwrite`: what a store looks like after its records were overwritten many times: the space that it
//! takes, what it writes for each byte given, and whether it stays as fast as it was.

mod check;
pub mod child;
mod cleaning;
mod command;
mod course;
mod figures;
mod job;
mod page;
mod report;
mod writers;

pub use command::{Settings, run};
pub use figures::Run;
pub use report::{Results, spread};
