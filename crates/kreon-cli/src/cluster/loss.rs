//! `kreon cluster accept-loss`.

use clap::Args;
use kreon_client::{Cluster, GroupId, Order, ServerId};

use super::survey::Surveyor;
use crate::failure::{Failure, Result};
use crate::sink::Sink;

const ABOUT_LOSS: &str = "\
A group whose servers have all failed waits until every one of its last set is back: any of them may have writes that the \
others lack. If one never returns, its writes that no other has are lost; this command says that you accept that. Look \
first whether the server cannot be started once more.";

/// Let a group go on with what one server has, although others that are gone may have had more
#[derive(Debug, Args)]
#[command(after_help = ABOUT_LOSS)]
pub struct AcceptLoss {
    /// The number of the group
    #[arg(value_name = "GROUP")]
    group: u32,
    /// The server whose copy goes on
    #[arg(long, value_name = "SERVER")]
    from: u32,
    /// You vouch that no process of the servers that are given up runs any more: needed if the cluster cannot know
    #[arg(long)]
    none_runs: bool,
}

impl AcceptLoss {
    pub fn run(&self, cluster: &Cluster, surveyor: &mut Surveyor, out: &mut Sink) -> Result<()> {
        let (group, server) = (GroupId(self.group), ServerId(self.from));
        let groups = surveyor.groups()?;
        let config = groups.iter().find(|(_, config)| config.group == group);
        let Some((_, config)) = config else {
            return Err(Failure::usage(format!("there is no group {}", group.0)));
        };
        cluster.order(Order::AcceptLoss {
            group,
            server,
            vouched: self.none_runs.then_some(config.term),
        })?;
        Ok(out.line(&format!(
            "group {} goes on with what server {} has",
            group.0, server.0
        ))?)
    }
}
