//! `kreon shell`: the commands line by line, at a prompt or from a pipe.

mod complete;
mod line;
mod lines;
mod run;

pub use run::run_shell;
