//! Some servers of one cluster.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kreon_coord::Paths;
use kreon_coord::fake::FakeSession;
use kreon_device::Backing;
use kreon_engine::Options;
use kreon_node::layout::{InitSettings, init};
use kreon_node::{ClientLimits, Coordination, GroupStatus, Node, NodeSettings, Talk};
use kreon_replica::machine::Timing;
use kreon_wire::{GroupConfig, GroupId, ServerId, Stage, TableNode};

use super::raw::Raw;

pub const CLUSTER: &str = "test";

/// Nothing takes so long.
pub const LIMIT: Duration = Duration::from_secs(60);

pub struct House {
    session: Arc<FakeSession>,
    folder: tempfile::TempDir,
    pub limits: ClientLimits,
    /// Most primaries of a server.
    primaries_max: fn(u32) -> u32,
    pub nodes: Vec<Node>,
}

impl House {
    /// A cluster of so many servers and groups, all of which run.
    pub fn new(servers: u32, groups: u32) -> Self {
        Self::with_limits(servers, groups, ClientLimits::default())
    }

    pub fn with_limits(servers: u32, groups: u32, limits: ClientLimits) -> Self {
        Self::with(servers, groups, limits, |_| 8)
    }

    /// Servers of which each has a most of primaries of its own.
    pub fn with_primaries_max(servers: u32, groups: u32, primaries_max: fn(u32) -> u32) -> Self {
        Self::with(servers, groups, ClientLimits::default(), primaries_max)
    }

    fn with(
        servers: u32,
        groups: u32,
        limits: ClientLimits,
        primaries_max: fn(u32) -> u32,
    ) -> Self {
        let _ = tracing_subscriber::fmt()
            .with_test_writer()
            .with_max_level(tracing::Level::INFO)
            .try_init();
        let session = Arc::new(FakeSession::new());
        let settings = InitSettings {
            groups: Some(groups),
            ..InitSettings::new(CLUSTER, servers)
        };
        let coordinator: Arc<dyn kreon_coord::Coordinator> = Arc::new(session.another());
        init(&coordinator, &settings).unwrap();
        let mut house = Self {
            session,
            folder: tempfile::tempdir().unwrap(),
            limits,
            primaries_max,
            nodes: Vec::new(),
        };
        for server in 1..=servers {
            house.start(server);
        }
        house.wait("all groups are served", |house| {
            (1..=groups).all(|group| house.try_primary(GroupId(group)).is_some())
        });
        house
    }

    pub fn settings(&self, server: u32) -> NodeSettings {
        let session = Arc::clone(&self.session);
        let coordination = Coordination::by(move || Ok(Arc::new(session.another())));
        let folder = self.folder.path().join(server.to_string());
        NodeSettings {
            memory_bytes: 8 << 23,
            primaries_max: (self.primaries_max)(server),
            timing: Timing {
                lease_us: 500_000,
                grace_us: 1_000_000,
                ..Timing::default()
            },
            clients: self.limits.clone(),
            store: Options {
                backing: Backing::Sparse,
                idle_reorganisation: false,
                ..Options::default()
            },
            ..NodeSettings::new(
                CLUSTER,
                ServerId(server),
                folder,
                "127.0.0.1:0",
                coordination,
            )
        }
    }

    pub fn start(&mut self, server: u32) {
        self.nodes.push(Node::start(self.settings(server)).unwrap());
    }

    /// The files of a group at a server.
    pub fn files(&self, server: ServerId, group: GroupId) -> Vec<PathBuf> {
        let folder = self.folder.path().join(server.0.to_string());
        let name = format!("group-{}.", group.0);
        let entries = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap());
        let is_it = |path: &PathBuf| {
            let found = path.file_name().unwrap().to_str().unwrap();
            found
                .strip_prefix(&name)
                .is_some_and(|end| end.parse::<u64>().is_ok())
        };
        entries.map(|entry| entry.path()).filter(is_it).collect()
    }

    /// Takes a server out of the house.
    pub fn take(&mut self, server: ServerId) -> Node {
        let index = self
            .nodes
            .iter()
            .position(|node| node.me().server == server);
        self.nodes.remove(index.unwrap())
    }

    /// The server that serves a group, and how the group stands there.
    pub fn try_primary(&self, group: GroupId) -> Option<(&Node, GroupStatus)> {
        self.nodes.iter().find_map(|node| {
            let status = node.status().group(group)?.clone();
            (status.stage == Stage::Serving).then_some((node, status))
        })
    }

    pub fn primary(&self, group: GroupId) -> &Node {
        // One whose set shrinks just then is short for a moment, and serves again.
        let start = Instant::now();
        loop {
            if let Some((found, _)) = self.try_primary(group) {
                return found;
            }
            assert!(start.elapsed() < LIMIT, "no primary of {group:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// A client of the primary of a group.
    pub fn client_of(&self, group: GroupId) -> Raw {
        Raw::connect(&self.primary(group).address())
    }

    pub fn master(&self) -> &Node {
        // One that is deposed just then is followed by another one.
        let start = Instant::now();
        loop {
            if let Some(found) = self.nodes.iter().find(|node| node.status().is_master) {
                return found;
            }
            assert!(start.elapsed() < LIMIT, "no master");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn wait(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        while !is_so(self) {
            if start.elapsed() > LIMIT {
                let groups = self.nodes.iter().map(|node| node.status().groups);
                let groups: Vec<_> = groups.collect();
                panic!(
                    "{what}: not within {LIMIT:?}: {groups:#?}, {:?}",
                    self.config(GroupId(1))
                );
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn talk(&self) -> Talk {
        Talk::new(Arc::new(self.session.another()))
    }

    pub fn config(&self, group: GroupId) -> GroupConfig {
        let node = self
            .talk()
            .read(&Paths::new(CLUSTER).group(group.0), false)
            .unwrap()
            .unwrap();
        GroupConfig::decode(&node.data).unwrap()
    }

    pub fn table(&self, table: &str) -> Option<TableNode> {
        let node = self
            .talk()
            .read(&Paths::new(CLUSTER).table(table), false)
            .unwrap()?;
        Some(TableNode::decode(&node.data).unwrap())
    }

    /// Makes a table, and waits until its primaries have seen that they have it.
    pub fn make_table(&self, table: &str, splits: &[&str]) -> TableNode {
        let mut client = Raw::connect(&self.master().address());
        client.create_table(table, splits).unwrap();
        let node = self.table(table).unwrap();
        for (start, group) in &node.ranges {
            let mut client = self.client_of(*group);
            self.until(|| client.get(*group, table, start).map(drop));
        }
        node
    }

    /// Does it until it is done: what was just made is not seen everywhere at once.
    pub fn until<T>(&self, mut act: impl FnMut() -> Result<T, super::raw::Failed>) -> T {
        let start = Instant::now();
        loop {
            match act() {
                Ok(done) => return done,
                Err(failed) => assert!(start.elapsed() < LIMIT, "{failed:?}"),
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
