//! What the servers of a test share: groups with their data, and a coordinator that tells of them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kreon_client::{ClientOptions, Cluster, Timing};
use kreon_coord::fake::FakeSession;
use kreon_coord::{CallId, Command, Coordinator, Event, Mode, Paths, Reply, Version};
use kreon_fabric::Fabric;
use kreon_fabric::tcp::{TcpFabric, TcpSettings};
use kreon_wire::{GroupConfig, GroupId, KeyRange, Member, ProcessId, ServerId, ServerNode, Term};
use parking_lot::Mutex;

use crate::server::Server;

pub const NAME: &str = "test";

pub type Data = BTreeMap<(String, Vec<u8>), Vec<u8>>;

/// A group, wherever its primary is.
pub struct Group {
    pub config: GroupConfig,
    version: Version,
    pub data: Data,
    /// Keys of each write that was appended, in order.
    pub appended: Vec<Vec<Vec<u8>>>,
    /// Of the term.
    pub snapshots: HashMap<u64, Data>,
}

/// What goes wrong at the servers; numbers count down.
#[derive(Default)]
pub struct Faults {
    /// So many writes are appended and their links closed.
    pub close_after_append: AtomicU32,
    /// So many writes are appended and not answered.
    pub lose_answers: AtomicU32,
    /// So many writes are appended and answered as unknown.
    pub unknown: AtomicU32,
    /// So many requests are neither carried out nor answered; their links are closed.
    pub close_before: AtomicU32,
    /// So many requests are neither carried out nor answered.
    pub ignore: AtomicU32,
    /// So many requests are refused as unavailable.
    pub refuse: AtomicU32,
    /// So many requests are refused as too many.
    pub busy: AtomicU32,
    /// So many answers are no answers.
    pub nonsense: AtomicU32,
    /// Requests wait at the servers.
    pub hold: AtomicBool,
    /// Requests that came so far.
    pub requests: AtomicU64,
}

/// Whether it happens once more.
pub fn happens(count: &AtomicU32) -> bool {
    let less = |count: u32| count.checked_sub(1);
    count
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less)
        .is_ok()
}

pub struct World {
    coordinator: FakeSession,
    pub groups: Mutex<BTreeMap<u32, Group>>,
    pub faults: Faults,
    pub master: AtomicU32,
    pub last_snapshot: AtomicU64,
    pub released: Mutex<HashSet<u64>>,
    pub ordered: Mutex<Vec<String>>,
}

fn member(server: u32) -> Member {
    Member {
        server: ServerId(server),
        process: ProcessId([server as u8; 16]),
    }
}

pub fn range(table: &str, start: &str, end: Option<&str>) -> KeyRange {
    KeyRange {
        table: table.to_owned(),
        start: start.into(),
        end: end.map(Into::into),
    }
}

/// Servers 1 to 3 and their world.
pub struct Scene {
    pub world: Arc<World>,
    pub servers: Vec<Server>,
}

impl Scene {
    /// Each of these lists is what a group holds, from group 1 on; its primary is the server of the same number.
    pub fn new(groups: &[Vec<KeyRange>]) -> Self {
        let world = Arc::new(World {
            coordinator: FakeSession::new(),
            groups: Mutex::default(),
            faults: Faults::default(),
            master: AtomicU32::new(3),
            last_snapshot: AtomicU64::new(0),
            released: Mutex::default(),
            ordered: Mutex::default(),
        });
        let paths = Paths::new(NAME);
        for path in paths.folders() {
            world.ask(Command::Create(path, [].into(), Mode::Persistent));
        }
        let servers: Vec<_> = (1..=3)
            .map(|id| Server::start(&world, member(id)))
            .collect();
        for server in &servers {
            let id = server.member.server;
            let node = ServerNode {
                server: id,
                peer_address: "127.0.0.1:1".to_owned(),
                client_address: server.address().as_str().to_owned(),
                domain: "here".to_owned(),
            };
            world.ask(Command::Create(
                paths.server(id.0),
                node.encode().into(),
                Mode::Persistent,
            ));
        }
        for (number, ranges) in (1..).zip(groups) {
            world.add_group(number, ranges.clone());
        }
        Self { world, servers }
    }

    /// The table `t`, from `m` on in group 2.
    pub fn of_two() -> Self {
        Self::new(&[vec![range("t", "", Some("m"))], vec![range("t", "m", None)]])
    }

    pub fn options() -> ClientOptions {
        ClientOptions {
            timing: Timing {
                limit_us: 1_500_000,
                patience_us: 300_000,
                rest_us: 2_000,
            },
            ..ClientOptions::default()
        }
    }

    pub fn connect(&self) -> Cluster {
        self.connect_with(Self::options())
    }

    pub fn connect_with(&self, options: ClientOptions) -> Cluster {
        let world = self.world.clone();
        let open = move || Ok(Arc::new(world.coordinator.another()) as Arc<dyn Coordinator>);
        Cluster::over(NAME, fabric(), Box::new(open), options).unwrap()
    }
}

pub fn fabric() -> Arc<dyn Fabric> {
    let settings = TcpSettings::new(NAME, None);
    Arc::new(TcpFabric::new(settings).unwrap())
}

impl World {
    fn ask(&self, command: Command) -> Reply {
        self.coordinator.send(CallId(0), command).unwrap();
        let mut events = Vec::new();
        let until = Instant::now() + Duration::from_secs(10);
        while Instant::now() < until {
            self.coordinator
                .poll(&mut events, Duration::from_millis(10))
                .unwrap();
            for event in events.drain(..) {
                if let Event::Replied(_, reply) = event {
                    return reply;
                }
            }
        }
        panic!("the coordinator says nothing");
    }

    fn add_group(&self, number: u32, ranges: Vec<KeyRange>) {
        let primary = member(number);
        let config = GroupConfig {
            group: GroupId(number),
            term: Term(1),
            loss_accepted: false,
            loss_term: Term(0),
            all_needed: false,
            min_in_sync: 1,
            primary: Some(primary),
            in_sync: vec![primary],
            members: vec![ServerId(1), ServerId(2), ServerId(3)],
            ranges,
        };
        assert_eq!(config.check(), Ok(()));
        let path = Paths::new(NAME).group(number);
        self.ask(Command::Create(
            path,
            config.encode().into(),
            Mode::Persistent,
        ));
        let group = Group {
            config,
            version: Version(0),
            data: Data::new(),
            appended: Vec::new(),
            snapshots: HashMap::new(),
        };
        self.groups.lock().insert(number, group);
    }

    /// The group has this primary from now on, or none, in the next term. The coordinator learns it now, or by
    /// [`tell_all`](Self::tell_all).
    pub fn move_group(&self, number: u32, to: Option<u32>, is_told: bool) {
        let mut groups = self.groups.lock();
        let group = groups.get_mut(&number).unwrap();
        group.config.term = group.config.term.next();
        group.config.primary = to.map(member);
        group.config.in_sync = group.config.primary.into_iter().collect();
        group.snapshots.clear();
        if is_told {
            self.tell(group);
        }
    }

    /// Groups have these ranges from now on. The coordinator learns it now, or later than they do.
    pub fn hold_ranges(self: &Arc<Self>, held: &[(u32, Vec<KeyRange>)], is_told: bool) {
        let mut groups = self.groups.lock();
        for (number, ranges) in held {
            let group = groups.get_mut(number).unwrap();
            group.config.ranges.clone_from(ranges);
        }
        drop(groups);
        if is_told {
            return self.tell_all();
        }
        let world = Arc::clone(self);
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(30));
            world.tell_all();
        });
    }

    /// The coordinator learns what is.
    pub fn tell_all(&self) {
        let mut groups = self.groups.lock();
        groups.values_mut().for_each(|group| self.tell(group));
    }

    fn tell(&self, group: &mut Group) {
        let path = Paths::new(NAME).group(group.config.group.0);
        let set = Command::Set(path, group.config.encode().into(), group.version);
        let Reply::Written(version) = self.ask(set) else {
            panic!("the group's node was not written");
        };
        group.version = version;
    }

    pub fn fill(&self, group: u32, table: &str, keys: impl Iterator<Item = String>) {
        let mut groups = self.groups.lock();
        let data = &mut groups.get_mut(&group).unwrap().data;
        data.extend(keys.map(|key| {
            (
                (table.to_owned(), key.clone().into_bytes()),
                format!("value of {key}").into_bytes(),
            )
        }));
    }

    /// How often a key was written, in all groups.
    pub fn appended(&self, key: &str) -> usize {
        let groups = self.groups.lock();
        let writes = groups.values().flat_map(|group| &group.appended);
        writes
            .filter(|keys| keys.iter().any(|k| k == key.as_bytes()))
            .count()
    }
}
