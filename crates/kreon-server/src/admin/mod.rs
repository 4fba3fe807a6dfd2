//! Commands on the server.

mod run;

pub(crate) use run::{REDIS_VERSION, run, unknown_subcommand};
