//! A cluster of kreon, and its client.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use kreon_client::{Cluster, Durability, GetTicket, GroupConfig, Region, Ticket};

use super::nodes::Nodes;
use super::processes::Servers;
use super::store::{Load, Store};

/// The table of this program.
const TABLE: &str = "bench";

/// How long the servers may take to agree, on a machine that does other things.
const PATIENCE: Duration = Duration::from_secs(60);

/// A cluster with its processes and its client.
pub struct Kreon {
    name: String,
    region: Region,
    servers: Servers,
    _nodes: Nodes,
}

impl Kreon {
    /// Waits until the cluster has all its copies, and makes the table.
    ///
    /// # Errors
    /// It does not serve in time.
    pub fn connect(nodes: Nodes) -> Result<Self> {
        let cluster = Cluster::connect(&nodes.url())?;
        let until = Instant::now() + PATIENCE;
        let region = loop {
            match cluster.create_table(TABLE, &[] as &[&[u8]]) {
                Ok(region) => break region,
                Err(error) if Instant::now() > until => return Err(error.into()),
                Err(_) => std::thread::sleep(Duration::from_millis(100)),
            }
        };
        region.put(b"here", b"it is")?;
        let servers = loop {
            let groups = cluster.groups()?;
            let config = &groups.first().context("the cluster has no group")?.config;
            if config.in_sync.len() == usize::from(nodes.copies) {
                break processes(&nodes, config)?;
            }
            ensure!(Instant::now() < until, "copies are missing: {config:?}");
            std::thread::sleep(Duration::from_millis(100));
        };
        let name = format!(
            "{}, {} copies: in the memory of all",
            nodes.version, nodes.copies
        );
        Ok(Self {
            name,
            region,
            servers,
            _nodes: nodes,
        })
    }
}

/// Who does what.
fn processes(nodes: &Nodes, config: &GroupConfig) -> Result<Servers> {
    let primary = config.primary.context("the group has no primary")?.server;
    let mut servers = Servers::default();
    for number in nodes.numbers() {
        let in_set = config
            .in_sync
            .iter()
            .any(|member| member.server.0 == number);
        let place = match (number == primary.0, in_set) {
            (true, _) => &mut servers.primary,
            (false, true) => &mut servers.backup,
            (false, false) => &mut servers.others,
        };
        place.push(nodes.process(number)?);
    }
    servers.others.push(nodes.coordinator());
    Ok(servers)
}

fn is_there(ticket: GetTicket) -> Result<()> {
    ensure!(ticket.wait()?.is_some(), "an acknowledged value is missing");
    Ok(())
}

impl Store for Kreon {
    fn name(&self) -> &str {
        &self.name
    }

    fn servers(&self) -> &Servers {
        &self.servers
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(self.region.put(key, value)?)
    }

    fn get(&mut self, key: &[u8]) -> Result<bool> {
        Ok(self.region.get(key)?.is_some())
    }

    fn puts(&mut self, load: &Load) -> Result<u64> {
        let (mut name, mut value) = (Vec::new(), Vec::new());
        let (mut under_way, mut count) = (VecDeque::new(), 0);
        while !load.is_over(count) {
            load.pair(count, &mut name, &mut value);
            let region = &self.region;
            under_way.push_back(region.put_later(&name, &value, Durability::Replicated)?);
            count += 1;
            if under_way.len() as u64 >= load.depth
                && let Some(ticket) = under_way.pop_front()
            {
                ticket.wait()?;
            }
        }
        under_way.into_iter().try_for_each(Ticket::wait)?;
        Ok(count)
    }

    fn gets(&mut self, load: &Load) -> Result<u64> {
        let mut name = Vec::new();
        let (mut under_way, mut count) = (VecDeque::new(), 0);
        while !load.is_over(count) {
            load.key(count, &mut name);
            under_way.push_back(self.region.get_later(&name)?);
            count += 1;
            if under_way.len() as u64 >= load.depth
                && let Some(ticket) = under_way.pop_front()
            {
                is_there(ticket)?;
            }
        }
        under_way.into_iter().try_for_each(is_there)?;
        Ok(count)
    }
}
