//! `kreon cluster init`.

use clap::Args;
use kreon_client::ClusterUrl;
use kreon_node::layout::{InitSettings, Layout};

use super::survey::Surveyor;
use crate::failure::{Failure, Result, tell};
use crate::sink::Sink;

/// Make a new cluster: once, before its servers are started
///
/// Servers have the numbers from 1 on. How many groups there are stays as it is made here, and limits among how many
/// primaries the data can be divided.
#[derive(Debug, Args)]
pub struct Init {
    /// How many servers there are to be
    #[arg(long, default_value_t = 3)]
    servers: u32,
    /// What each server fails together with, a rack or a power line, in the order of their numbers; copies of a group go to
    /// different ones [default: each server is by itself]
    #[arg(long, value_name = "NAME,NAME,..", value_delimiter = ',')]
    domains: Vec<String>,
    /// Copies of each group [default: 3, or as many as there are servers]
    #[arg(long, value_name = "COPIES")]
    replicas: Option<u8>,
    /// Fewest copies that a write must reach [default: 2 of 3 and more copies, 1 of fewer]
    #[arg(long, value_name = "COPIES")]
    min_in_sync: Option<u8>,
    /// Groups [default: 5 for each server]
    #[arg(long)]
    groups: Option<u32>,
    /// Also where the failure of any server would stop writes
    #[arg(long)]
    force: bool,
}

impl Init {
    pub fn run(&self, url: &str, out: &mut Sink) -> Result<()> {
        let url = ClusterUrl::parse(url)?;
        let mut settings = InitSettings::new(&url.name, self.servers);
        if !self.domains.is_empty() {
            if self.domains.len() != settings.servers.len() {
                return Err(Failure::usage(format!(
                    "--domains: {} names for {} servers",
                    self.domains.len(),
                    settings.servers.len()
                )));
            }
            for (server, domain) in settings.servers.iter_mut().zip(&self.domains) {
                server.domain.clone_from(domain);
            }
        }
        settings.replicas = self.replicas;
        settings.min_in_sync = self.min_in_sync;
        settings.groups = self.groups;
        settings.force = self.force;
        let layout = Surveyor::begin(&url)?.init(&settings)?;
        if layout.shares_domains {
            tell("kreon: warning: there are too few failure domains: copies of a group share one");
        }
        Ok(out.line(&summary(&url, &layout))?)
    }
}

fn summary(url: &ClusterUrl, layout: &Layout) -> String {
    format!(
        "cluster `{}`: {} groups of {} copies, {} of them in sync for writes",
        url.name,
        layout.groups.len(),
        layout.replicas,
        layout.min_in_sync
    )
}
