//! `kreon cluster`: servers of a cluster, and work on it as a whole.

mod args;
mod backups;
mod connect;
mod init;
mod key;
mod loss;
mod moves;
mod operate;
mod page;
mod process;
mod serve;
mod settings;
mod status;
mod survey;
mod tables;
mod up;
mod verify;

pub use args::ClusterCommand;
pub use connect::connect;
