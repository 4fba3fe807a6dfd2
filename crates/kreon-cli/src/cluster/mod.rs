//! `kreon cluster`: servers of a cluster, and work on it as a whole.

mod args;
mod key;
mod process;
mod up;

pub use args::ClusterCommand;
