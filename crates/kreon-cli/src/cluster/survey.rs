//! What the coordinator says of a cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kreon::{Error, ErrorKind, Result};
use kreon_client::ClusterUrl;
use kreon_coord::{Coordinator, Paths};
use kreon_node::layout::{self, InitSettings, Layout};
use kreon_node::{Talk, limits_path};
use kreon_wire::{GroupConfig, LimitsNode, Member, ProcessId, ServerId, ServerNode, TableNode};

use super::connect::session;
use crate::failure::Failure;

/// What ZooKeeper is asked for: this session is of no importance.
const SESSION_MS: u32 = 10_000;

/// A session with the coordinator of a cluster, to look again and again.
pub struct Surveyor {
    session: Arc<dyn Coordinator>,
    talk: Talk,
    paths: Paths,
    name: String,
}

/// What was seen. The parts were read one after the other: two may be of different moments.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Registered servers, ascending.
    pub servers: Vec<ServerNode>,
    /// Most groups of which a server is the primary, of those that say so.
    pub primaries_max: BTreeMap<ServerId, u32>,
    /// Starts of servers that have a session.
    pub live: BTreeSet<Member>,
    /// The server in the office of the master, as far as can be seen.
    pub master: Option<ServerId>,
    /// Configurations with their versions, ascending by group.
    pub groups: Vec<(u64, GroupConfig)>,
    /// Tables, ascending by name.
    pub tables: Vec<TableNode>,
}

impl Surveyor {
    /// Begins a session.
    ///
    /// # Errors
    /// If ZooKeeper cannot be reached.
    pub fn begin(url: &ClusterUrl) -> Result<Self, Failure> {
        let session: Arc<dyn Coordinator> = Arc::new(session(url, SESSION_MS)?);
        Ok(Self {
            talk: Talk::new(Arc::clone(&session)),
            session,
            paths: Paths::new(&url.name),
            name: url.name.clone(),
        })
    }

    /// Whether there is such a cluster.
    ///
    /// # Errors
    /// `Io`.
    pub fn has_cluster(&mut self) -> Result<bool> {
        Ok(self.talk.read(&self.paths.format(), false)?.is_some())
    }

    /// Makes a cluster.
    ///
    /// # Errors
    /// `InvalidArgument` if its layout is not allowed, or there is one; `Io`.
    pub fn init(&self, settings: &InitSettings) -> Result<Layout> {
        // Answers go to whoever polls the session: no other call is under way here.
        layout::init(&self.session, settings)
    }

    /// Looks at all of it.
    ///
    /// # Errors
    /// `NotFound` if there is no such cluster; `Corruption` if a node cannot be understood; `Io`.
    pub fn look(&mut self) -> Result<Survey> {
        if !self.has_cluster()? {
            let message = format!("there is no cluster `{}`", self.name);
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        let paths = self.paths.clone();
        let live = self.names(&paths.live())?;
        let live: BTreeSet<Member> = live.iter().filter_map(|name| member(name)).collect();
        let (mut servers, mut primaries_max) = (Vec::new(), BTreeMap::new());
        for name in self.names(&paths.servers())? {
            let node = self
                .talk
                .read(&format!("{}/{name}", paths.servers()), false)?;
            if let Some(node) = node {
                servers.push(ServerNode::decode(&node.data)?);
            }
            let server = ServerId(name.parse().unwrap_or_default());
            if let Some(node) = self.talk.read(&limits_path(&paths, server), false)? {
                let limits = LimitsNode::decode(&node.data)?;
                primaries_max.insert(server, limits.primaries_max);
            }
        }
        servers.sort_by_key(|node| node.server);
        let mut tables = Vec::new();
        for name in self.names(&paths.tables())? {
            if let Some(node) = self.talk.read(&paths.table(&name), false)? {
                tables.push(TableNode::decode(&node.data)?);
            }
        }
        tables.sort_by(|a, b| a.table.cmp(&b.table));
        Ok(Survey {
            servers,
            primaries_max,
            master: self.master(&live)?,
            live,
            groups: self.groups()?,
            tables,
        })
    }

    /// The configurations of all groups with their versions, ascending.
    ///
    /// # Errors
    /// As [`look`](Self::look).
    pub fn groups(&mut self) -> Result<Vec<(u64, GroupConfig)>> {
        let mut groups = BTreeMap::new();
        for name in self.names(&self.paths.groups())? {
            let path = format!("{}/{name}", self.paths.groups());
            if let Some(node) = self.talk.read(&path, false)? {
                let config = GroupConfig::decode(&node.data)?;
                groups.insert(config.group, (node.version.0, config));
            }
        }
        Ok(groups.into_values().collect())
    }

    fn master(&mut self, live: &BTreeSet<Member>) -> Result<Option<ServerId>> {
        let candidates = self.names(&self.paths.master())?;
        let number = |name: &str| {
            name.rsplit('-')
                .next()
                .and_then(|digits| digits.parse::<u64>().ok())
        };
        let first = candidates
            .iter()
            .min_by_key(|name| number(name).unwrap_or(u64::MAX));
        let of = |member: &&Member| {
            let start = Paths::candidate(u128::from_be_bytes(member.process.0));
            first.is_some_and(|name| name.starts_with(&start))
        };
        Ok(live.iter().find(of).map(|member| member.server))
    }

    fn names(&mut self, path: &str) -> Result<Vec<String>> {
        Ok(self.talk.children(path, false)?.unwrap_or_default())
    }
}

fn member(name: &str) -> Option<Member> {
    let (server, process) = Paths::live_of(name)?;
    Some(Member {
        server: ServerId(server),
        process: ProcessId(process.to_be_bytes()),
    })
}

impl Survey {
    /// Whether a start of the server has a session.
    pub fn is_live(&self, server: ServerId) -> bool {
        self.live.iter().any(|member| member.server == server)
    }

    /// What is not as it should be, one line each.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for (_, config) in &self.groups {
            let group = config.group.0;
            let missing: Vec<_> = config
                .members
                .iter()
                .filter(|server| {
                    !config
                        .in_sync
                        .iter()
                        .any(|member| member.server == **server)
                })
                .map(|server| match self.is_live(*server) {
                    true => format!("server {}", server.0),
                    false => format!("server {} (down)", server.0),
                })
                .collect();
            let set = config.in_sync.len();
            if !self.has_primary(config) {
                warnings.push(format!(
                    "group {group} has no primary: it takes no requests"
                ));
            } else if set < usize::from(config.min_in_sync) {
                warnings.push(format!(
                    "group {group} takes no writes: {set} copies are in sync, and {} are needed",
                    config.min_in_sync
                ));
            }
            if !missing.is_empty() {
                warnings.push(format!(
                    "group {group} is under-replicated: {set} of {} copies are in sync, not that of {}",
                    config.members.len(),
                    missing.join(" and ")
                ));
            }
        }
        for table in self.tables.iter().filter(|table| table.creating) {
            warnings.push(format!("table `{}` is being made", table.table));
        }
        warnings
    }

    /// Whether each group has a primary in office.
    pub fn all_have_primaries(&self) -> bool {
        let mut groups = self.groups.iter();
        !self.groups.is_empty() && groups.all(|(_, config)| self.has_primary(config))
    }

    fn has_primary(&self, config: &GroupConfig) -> bool {
        let is_live = |primary| self.live.contains(&primary);
        config.primary.is_some_and(is_live)
    }
}
