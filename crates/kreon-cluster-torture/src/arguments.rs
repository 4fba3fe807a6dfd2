//! The command line.

use std::path::PathBuf;

use crate::cluster::serve::Serve;

/// Tortures a cluster of real processes on a real ZooKeeper.
#[derive(clap::Parser, Debug)]
#[command(name = "kreon-cluster-torture", args_conflicts_with_subcommands = true)]
pub struct Arguments {
    /// For the process that is killed.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// How long.
    #[arg(long, default_value_t = 10.0)]
    pub minutes: f64,
    /// Makes the same choices again; the moments stay chance.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Instead of all faults: freezes primaries so often for three sessions.
    #[arg(long)]
    pub pauses: Option<u64>,
    /// Only faults whose names contain one of these words.
    #[arg(long)]
    pub only: Vec<String>,
    /// Servers.
    #[arg(long, default_value_t = 3)]
    pub servers: u32,
    /// ZooKeepers: 1, 3 or 5.
    #[arg(long, default_value_t = 3)]
    pub zookeepers: u32,
    /// Groups.
    #[arg(long, default_value_t = 4)]
    pub groups: u32,
    /// Clients that do everything, beside one for each group that only writes.
    #[arg(long, default_value_t = 6)]
    pub clients: u32,
    /// Mean time between two calls of one client.
    #[arg(long, default_value_t = 3)]
    pub pace_ms: u64,
    /// Time of a session with ZooKeeper.
    #[arg(long, default_value_t = 1000)]
    pub session_ms: u64,
    /// All clients wait for a frozen server until it answers, as a share of them does otherwise: they would see what it should
    /// not say.
    #[arg(long)]
    pub patient: bool,
    /// Without network namespaces and disks of their own, also as root.
    #[arg(long)]
    pub plain: bool,
    /// Folder for logs and data; without: one below the folder for temporary files, which goes if nothing is wrong.
    #[arg(long)]
    pub data: Option<PathBuf>,
    /// Also writes the figures to this file, as JSON.
    #[arg(long)]
    pub json: Option<PathBuf>,
    /// Plants a bug in the servers: the run is to find it. Needs the feature `planted`.
    #[arg(long)]
    pub bug: Option<String>,
    /// Hunts, one after the other, for the planted bugs with these words in their names (without words: for all that can be
    /// found so), each for `--minutes`.
    #[arg(long, num_args = 0..)]
    pub planted: Option<Vec<String>>,
    /// Keeps logs and data also if nothing is wrong.
    #[arg(long)]
    pub keep: bool,
}

/// Not for people.
#[derive(clap::Subcommand, Debug)]
pub enum Command {
    /// One server.
    #[command(hide = true)]
    Serve(Serve),
}
