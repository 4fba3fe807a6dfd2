//! `kreon cluster`: servers of a cluster, and work on it as a whole.

mod args;
mod init;
mod key;
mod page;
mod process;
mod serve;
mod settings;
mod status;
mod survey;
mod up;
mod url;

pub use args::ClusterCommand;
