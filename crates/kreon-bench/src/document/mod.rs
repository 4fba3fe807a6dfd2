//! `kreon-bench readme`: tables of documents, written from the files of runs. A document says between which lines a table
//! stands, and of which runs it is.

mod block;
mod command;
mod head;
mod marks;
mod sources;
mod wanted;

pub use block::overview;
pub use command::{Settings, run};
