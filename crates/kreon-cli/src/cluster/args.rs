//! The commands behind `kreon cluster`.

use clap::{Args, Subcommand};
use kreon_client::ClusterUrl;

use super::connect::connect;
use super::init::Init;
use super::key::MakeKey;
use super::loss::AcceptLoss;
use super::operate::{AddServer, Drain, MoveGroup, Operation};
use super::serve::Serve;
use super::status::{Groups as ListGroups, Status};
use super::survey::Surveyor;
use super::tables::{CreateTable, DropTable};
use super::up::{Down, Up};
use super::verify::Verify;
use crate::failure::{Failure, Result};
use crate::interrupt::Interrupt;
use crate::options::{Groups, MakesTables, OnCluster, Shared, With};
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
    CreateTable(With<MakesTables, CreateTable>),
    DropTable(With<OnCluster, DropTable>),
    AddServer(With<OnCluster, AddServer>),
    Drain(With<OnCluster, Drain>),
    MoveGroup(With<OnCluster, MoveGroup>),
    AcceptLoss(With<OnCluster, AcceptLoss>),
    Verify(With<OnCluster, Verify>),
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
            Action::CreateTable(create) => create.groups.given(),
            Action::DropTable(drop) => drop.groups.given(),
            Action::AddServer(add) => add.groups.given(),
            Action::Drain(drain) => drain.groups.given(),
            Action::MoveGroup(group) => group.groups.given(),
            Action::AcceptLoss(loss) => loss.groups.given(),
            Action::Verify(verify) => verify.groups.given(),
        }
    }

    pub fn run(&self, shared: &Shared, out: &mut Sink) -> Result<()> {
        match &self.action {
            Action::Up(up) => up.run(out),
            Action::Down(down) => down.run(out),
            Action::Key(key) => key.run(),
            Action::Init(init) => init.command.run(&url(shared)?, out),
            Action::Serve(serve) => serve.command.run(shared, out),
            _ => self.run_on_cluster(shared, out),
        }
    }

    fn run_on_cluster(&self, shared: &Shared, out: &mut Sink) -> Result<()> {
        let interrupt = Interrupt::on_signals()?;
        let url = url(shared)?;
        let cluster = connect(&url, shared.key_file().as_deref())?;
        let mut surveyor = Surveyor::begin(&ClusterUrl::parse(&url)?)?;
        match &self.action {
            Action::Status(status) => status.command.run(&url, &cluster, &mut surveyor, out),
            Action::CreateTable(create) => create.command.run(&cluster, shared, &interrupt, out),
            Action::DropTable(drop) => drop.command.run(&cluster),
            Action::AcceptLoss(loss) => loss.command.run(&cluster, &mut surveyor, out),
            Action::Groups(groups) => groups.command.run(&cluster, &mut surveyor, out),
            _ => {
                let operation = Operation {
                    cluster: &cluster,
                    surveyor: &mut surveyor,
                    interrupt: &interrupt,
                };
                self.operate(operation, out)
            }
        }
    }

    fn operate(&self, operation: Operation<'_>, out: &mut Sink) -> Result<()> {
        match &self.action {
            Action::Verify(verify) => verify.command.run(operation, out),
            Action::AddServer(add) => add.command.run(operation, out),
            Action::Drain(drain) => drain.command.run(operation, out),
            Action::MoveGroup(group) => group.command.run(operation, out),
            _ => Ok(()),
        }
    }
}

fn url(shared: &Shared) -> Result<String> {
    let missing = "no cluster named: give --cluster URL or set KREON_CLUSTER";
    shared.cluster_url().ok_or_else(|| Failure::usage(missing))
}
