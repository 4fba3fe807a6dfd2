//! `cargo xtask results`: all runs that the tables of the documents are made of, and then the tables.

mod command;
mod documents;
mod plan;

pub use command::{Arguments, run};
