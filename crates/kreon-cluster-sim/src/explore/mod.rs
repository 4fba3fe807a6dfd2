//! The exhaustive search: breadth first, so that what it finds is a shortest way.
//!
//! A step is something that comes from outside (a client, the power, a network that delivers) together with all that
//! the machines do about it at once. The machines' messages to the master and back, and a candidate's questions to the
//! coordinator, take no time of their own here; records, progress, seals, states of candidates and swaps of primaries
//! do. Random walks put time between all of them.

mod bounds;
mod check;
mod encode;
mod search;
mod seen;
mod settle;
mod show;
mod step;
mod steps;
mod world;

pub use bounds::Bounds;
pub use check::Violation;
pub use search::{Found, Verdict, search, sweep};
pub use settle::Work;
pub use step::Step;
pub use world::{GROUP, World};
