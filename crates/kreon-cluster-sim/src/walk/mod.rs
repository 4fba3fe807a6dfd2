//! Random walks: the machines with clocks, a network, sessions and faults, for as long as one likes. A seed tells
//! everything that happens.

mod classes;
mod clients;
mod event;
mod faults;
mod history;
mod judge;
mod messages;
mod node;
mod of_primary;
mod of_replica;
mod office;
mod operator;
mod requests;
mod run;

pub use classes::CLASSES;
pub use judge::Broken;
pub use run::{Course, Walked, walk};
