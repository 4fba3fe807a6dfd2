//! Servers of one process: real threads and sockets, files or simulated devices, and a coordinator in memory.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use kreon_base::{Error, ErrorKind, Lsn, Result};
use kreon_coord::fake::FakeSession;
use kreon_coord::{CallId, Command, Coordinator, Event, Mode, Paths, Reply};
use kreon_device::Backing;
use kreon_engine::{Durability, MEMORY_BYTES_MIN, Operation, Options, Terms};
use kreon_fabric::tcp::{TcpFabric, TcpSettings};
use kreon_fabric::{Address, Link};
use kreon_sync::{AtomicU64, Mutex, Ordering};
use kreon_wire::{GroupId, Member, ProcessId, ServerId, ServerNode, Term};

use super::super::links::Receiver;
use super::super::{
    Asking, Clients, Group, GroupSettings, Host, Links, LinksSettings, Server, ServerSettings,
    Serving, Volume,
};
use super::filter::Filter;
use crate::follower::Capacity;
use crate::machine::primary::ReadId;
use crate::machine::{Configuration, Known, Timing, Version};

const CLUSTER: &str = "tests";

/// The server that only is the master.
const MASTER: u32 = 9;

/// Bits of all servers but the master.
pub const ALL_SERVERS: u64 = !(1 << MASTER);

/// Longer than anything takes beside other load.
pub const LIMIT: Duration = Duration::from_secs(60);

pub const SILENCE: Duration = Duration::from_millis(800);

pub fn timing() -> Timing {
    let silence_us = SILENCE.as_micros() as u64;
    Timing {
        silence_us,
        beat_every_us: silence_us / 4,
        lease_us: silence_us,
        grace_us: 2 * silence_us,
        seal_patience_us: silence_us,
        attempt_us: silence_us,
    }
}

pub fn options() -> Options {
    Options {
        memory_bytes: MEMORY_BYTES_MIN,
        backing: Backing::Sparse,
        idle_reorganisation: false,
        ..Options::default()
    }
}

/// Waits until something is so.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < LIMIT, "{what}: never");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The coordinator, and a master.
pub struct Cluster {
    pub timing: Timing,
    root: Arc<FakeSession>,
    paths: Paths,
    master: OnceMaster,
    starts: AtomicU64,
    /// Servers that get no session, a bit for each.
    pub cut_off: Arc<AtomicU64>,
    /// Servers whose watches are lost, a bit for each.
    pub unwatched: Arc<AtomicU64>,
}

type OnceMaster = std::sync::OnceLock<Arc<Server>>;

impl Cluster {
    pub fn new(groups: &[GroupId], timing: Timing) -> Self {
        let cluster = Self {
            timing,
            root: Arc::new(FakeSession::new()),
            paths: Paths::new(CLUSTER),
            master: OnceMaster::new(),
            starts: AtomicU64::new(0),
            cut_off: Arc::default(),
            unwatched: Arc::default(),
        };
        let folders = cluster.paths.folders();
        for path in folders.into_iter().chain([cluster.paths.master_fence()]) {
            cluster.call(Command::Create(path, [].into(), Mode::Persistent));
        }
        let (links, asking) = cluster.parts(MASTER, Arc::new(NoClients), None);
        let settings = ServerSettings {
            timing,
            mastered: groups.to_vec(),
        };
        let master = Server::start(settings, links, asking).unwrap();
        assert!(cluster.master.set(master).is_ok());
        cluster
    }

    pub fn master(&self) -> &Arc<Server> {
        self.master.get().unwrap()
    }

    fn call(&self, command: Command) -> Reply {
        let session = self.root.another();
        // A session may begin at a server that lags behind.
        session.send(CallId(1), Command::Sync).unwrap();
        session.send(CallId(2), command).unwrap();
        let mut events = Vec::new();
        session.poll(&mut events, Duration::from_secs(1)).unwrap();
        let reply = events.into_iter().find_map(|event| match event {
            Event::Replied(CallId(2), reply) => Some(reply),
            _ => None,
        });
        reply.unwrap()
    }

    /// Links and sessions of a new start of a server.
    fn parts(
        &self,
        server: u32,
        clients: Arc<dyn Clients>,
        receiver: Option<Weak<dyn Receiver>>,
    ) -> (Arc<Links>, Arc<Asking>) {
        let start = self.starts.fetch_add(1, Ordering::Relaxed) + 1;
        let me = Member {
            server: ServerId(server),
            process: ProcessId(u128::from(start).to_be_bytes()),
        };
        let fabric = TcpFabric::new(TcpSettings::new(CLUSTER, None)).unwrap();
        let settings = LinksSettings {
            me,
            listen_at: Address::new("127.0.0.1:0"),
            connect: Duration::from_secs(1),
        };
        let links = Links::start(Arc::new(fabric), settings, clients).unwrap();
        if let Some(receiver) = receiver {
            links.hand_to(receiver);
        }
        let address = links.address().unwrap().to_string();
        let node = ServerNode {
            server: me.server,
            client_address: address.clone(),
            peer_address: address,
            domain: "here".to_owned(),
        };
        let session = Session {
            below: Arc::clone(&self.root),
            cut_off: Arc::clone(&self.cut_off),
            unwatched: Arc::clone(&self.unwatched),
            server,
        };
        let begin = Box::new(move || match session.is_among(&session.cut_off) {
            true => Err(Error::new(ErrorKind::Io, "cut off")),
            false => Ok(Arc::new(session.another()) as Arc<dyn Coordinator>),
        });
        let asking = Asking::new((self.paths.clone(), begin), (me, node), server == MASTER);
        (links, asking)
    }

    /// A new start of a server, with a replica of each group.
    pub fn start(
        &self,
        server: u32,
        groups: Vec<(GroupId, Arc<dyn Volume>)>,
        options: Options,
    ) -> Node {
        let filter = Arc::new(Filter::default());
        let weak: Weak<Filter> = Arc::downgrade(&filter);
        let (links, asking) = self.parts(server, Arc::new(NoClients), Some(weak));
        let me = links.me();
        let settings = ServerSettings {
            timing: self.timing,
            mastered: Vec::new(),
        };
        let running = Server::start(settings, links, asking).unwrap();
        filter.hand_on_to(&running);
        let mut there = HashMap::new();
        for (id, volume) in groups {
            let host = Arc::new(TestHost::default());
            let settings = GroupSettings {
                id,
                options: options.clone(),
                capacity: Capacity::default(),
                timing: self.timing,
            };
            let shared = Arc::clone(&host) as Arc<dyn Host>;
            let group = running.add_group(settings, volume, shared).unwrap();
            there.insert(id, (group, host));
        }
        Node {
            server: running,
            me,
            groups: there,
            filter,
        }
    }

    /// A group whose whole set these are.
    pub fn make(&self, id: GroupId, members: &[&Node], min_in_sync: u8) {
        let members: Vec<Member> = members.iter().map(|node| node.me).collect();
        let config = Configuration {
            term: Term(1),
            primary: None,
            servers: members.iter().map(|member| member.server).collect(),
            in_sync: members.into(),
            min_in_sync,
            after_loss: false,
            loss_term: Term(0),
            all_needed: false,
            ranges: [].into(),
        };
        let bytes = config.to_node(id).unwrap().encode();
        let path = self.paths.group(id.0);
        self.call(Command::Create(path, bytes.into(), Mode::Persistent));
        self.master().look();
    }

    pub fn known(&self, id: GroupId) -> Known {
        let (path, watch) = (self.paths.group(id.0), false);
        let Reply::Node(node) = self.call(Command::Get { path, watch }) else {
            panic!("the group has no node");
        };
        Known::of_bytes(id, &node.data, Version(node.version.0)).unwrap()
    }

    /// Waits until these are the set, and a primary serves them all.
    pub fn await_set(&self, id: GroupId, members: &[&Node]) {
        let mut wanted: Vec<Member> = members.iter().map(|node| node.me).collect();
        wanted.sort_unstable();
        wait_until("a set that is served", || {
            let known = self.known(id);
            let mut set = known.config.in_sync.to_vec();
            set.sort_unstable();
            let serves = |node: &&&Node| node.serves(id) && known.config.is_led_by(node.me);
            set == wanted && members.iter().any(|node| serves(&node))
        });
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.master().end();
    }
}

/// A session that ends when its server is cut off.
struct Session {
    below: Arc<FakeSession>,
    cut_off: Arc<AtomicU64>,
    unwatched: Arc<AtomicU64>,
    server: u32,
}

impl Session {
    fn is_among(&self, servers: &AtomicU64) -> bool {
        servers.load(Ordering::Acquire) & 1 << self.server != 0
    }

    fn another(&self) -> Self {
        Self {
            below: Arc::new(self.below.another()),
            cut_off: Arc::clone(&self.cut_off),
            unwatched: Arc::clone(&self.unwatched),
            server: self.server,
        }
    }
}

impl Coordinator for Session {
    fn send(&self, call: CallId, command: Command) -> Result<()> {
        self.below.send(call, command)
    }

    fn poll(&self, out: &mut Vec<Event>, patience: Duration) -> Result<()> {
        if self.is_among(&self.cut_off) {
            self.below.expire();
        }
        self.below.poll(out, patience)?;
        if self.is_among(&self.unwatched) {
            out.retain(|event| !matches!(event, Event::Changed(_)));
        }
        Ok(())
    }

    fn session_ms(&self) -> u32 {
        self.below.session_ms()
    }
}

/// A start of a server. It ends as a crash would when this is dropped.
pub struct Node {
    pub server: Arc<Server>,
    pub me: Member,
    pub filter: Arc<Filter>,
    groups: HashMap<GroupId, (Arc<Group>, Arc<TestHost>)>,
}

impl Node {
    pub fn group(&self, id: GroupId) -> &Arc<Group> {
        &self.groups[&id].0
    }

    pub fn serves(&self, id: GroupId) -> bool {
        self.groups[&id].1.serving.lock().is_some()
    }

    /// Puts keys, and waits until they are acknowledged; `false`: this server is not, or not any more, the primary.
    pub fn put(&self, id: GroupId, keys: std::ops::Range<u32>) -> bool {
        let host = &self.groups[&id].1;
        let Some(serving) = host.serving.lock().clone() else {
            return false;
        };
        let engine = &serving.engine;
        let mut end = Lsn(0);
        for key in keys {
            let appended = engine.region_with("values", Durability::Buffered);
            let appended = appended.and_then(|region| {
                engine.write_ahead(&[Operation {
                    region: &region,
                    key: &key.to_be_bytes(),
                    value: Some(&value(key)),
                    is_range: false,
                    terms: Terms::default(),
                }])
            });
            match appended {
                Ok(upto) => end = upto,
                Err(_) => return false,
            }
        }
        wait_until("an acknowledgement", || {
            host.acknowledged.load(Ordering::Acquire) >= end.0 || !self.serves(id)
        });
        self.serves(id)
    }

    /// Makes all that was put durable on all members.
    pub fn sync(&self, id: GroupId) {
        let serving = self.groups[&id].1.serving.lock().clone().unwrap();
        serving.engine.sync().unwrap();
    }

    /// Whether it has all of these keys.
    pub fn has(&self, id: GroupId, keys: std::ops::Range<u32>) -> bool {
        let serving = self.groups[&id].1.serving.lock().clone().unwrap();
        let region = serving.engine.existing_region("values").unwrap();
        let is_there = |key: u32| {
            let found = |found: &[u8]| found == value(key);
            let got = serving.engine.get(&region, &key.to_be_bytes(), None, found);
            got.unwrap() == Some(true)
        };
        keys.into_iter().all(is_there)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.server.end();
    }
}

fn value(key: u32) -> Vec<u8> {
    key.to_le_bytes().repeat(250)
}

/// The server above a group: it knows what is acknowledged.
#[derive(Default)]
struct TestHost {
    serving: Mutex<Option<Serving>>,
    acknowledged: AtomicU64,
}

impl Host for TestHost {
    fn serve(&self, serving: Serving) {
        self.acknowledged.store(0, Ordering::Release);
        *self.serving.lock() = Some(serving);
    }

    fn take_writes(&self, _: bool) {}

    fn acknowledge(&self, upto: Lsn) {
        self.acknowledged.fetch_max(upto.0, Ordering::AcqRel);
    }

    fn show(&self, _: ReadId) {}

    fn drop_read(&self, _: ReadId) {}

    fn leave_office(&self) {
        *self.serving.lock() = None;
    }
}

struct NoClients;

impl Clients for NoClients {
    fn linked(&self, link: Arc<dyn Link>) {
        link.close("no clients here");
    }
}
