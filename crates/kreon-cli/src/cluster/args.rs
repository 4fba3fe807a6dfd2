//! The commands behind `kreon cluster`.

use clap::{Args, Subcommand};

use super::key::MakeKey;
use super::up::{Down, Up};
use crate::failure::Result;
use crate::options::Shared;
use crate::sink::Sink;

/// Run a cluster, on this machine or on several: servers that hold copies of each other's data
#[derive(Debug, Args)]
pub struct ClusterCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Up(Up),
    Down(Down),
    Key(MakeKey),
}

impl ClusterCommand {
    pub fn given(&self) -> Shared {
        Shared::default()
    }

    pub fn run(&self, _shared: &Shared, out: &mut Sink) -> Result<()> {
        match &self.action {
            Action::Up(up) => up.run(out),
            Action::Down(down) => down.run(out),
            Action::Key(key) => key.run(),
        }
    }
}
