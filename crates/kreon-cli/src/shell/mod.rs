//! `kreon shell`: the commands line by line, at a prompt or from a pipe.

mod lines;
mod run;
mod words;

pub use run::run_shell;
pub use words::split_words;
