//! A long run: part after part, each with ever new seeds, until the time is over.
//!
//! - [`parts`]: what there is to run
//! - [`turn`]: one part, once
//! - [`rounds`]: in turn, and the sum

mod parts;
mod rounds;
mod turn;

pub use rounds::{Arguments, run};
