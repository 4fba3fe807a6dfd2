//! The commands behind `kreon cluster`.

use clap::{Args, Subcommand};

use super::init::Init;
use super::key::MakeKey;
use super::serve::Serve;
use super::status::{Groups as ListGroups, Status};
use super::up::{Down, Up};
use crate::failure::{Failure, Result};
use crate::options::{Groups, OnCluster, Shared, With};
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
    Init(With<OnCluster, Init>),
    Serve(With<OnCluster, Serve>),
    Status(With<OnCluster, Status>),
    Groups(With<OnCluster, ListGroups>),
}

impl ClusterCommand {
    /// Options that were given after the command.
    pub fn given(&self) -> Shared {
        match &self.action {
            Action::Up(_) | Action::Down(_) | Action::Key(_) => Shared::default(),
            Action::Init(init) => init.groups.given(),
            Action::Serve(serve) => serve.groups.given(),
            Action::Status(status) => status.groups.given(),
            Action::Groups(groups) => groups.groups.given(),
        }
    }

    pub fn run(&self, shared: &Shared, out: &mut Sink) -> Result<()> {
        let url = || {
            let missing = "no cluster named: give --cluster URL or set KREON_CLUSTER";
            shared.cluster_url().ok_or_else(|| Failure::usage(missing))
        };
        match &self.action {
            Action::Up(up) => up.run(out),
            Action::Down(down) => down.run(out),
            Action::Key(key) => key.run(),
            Action::Init(init) => init.command.run(&url()?, out),
            Action::Serve(serve) => serve.command.run(shared, out),
            Action::Status(status) => status.command.run(&url()?, out),
            Action::Groups(groups) => groups.command.run(&url()?, out),
        }
    }
}
