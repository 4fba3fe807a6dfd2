//! A server: one replica of the one group, and its clients.

use std::collections::HashMap;
use std::error::Error;
use std::io::{IoSlice, Read};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use kreon_base::Lsn;
use kreon_coord::{Coordinator, Paths};
use kreon_engine::{Durability, Engine, Operation, Options, RegionState, Terms};
use kreon_fabric::tcp::{TcpFabric, TcpSettings};
use kreon_fabric::{Address, Event, Link};
use kreon_replica::drive::{
    Asking, Clients, FileVolume, Group, GroupSettings, Host, Links, LinksSettings, Replies, Server,
    ServerSettings, Serving,
};
use kreon_replica::follower::Capacity;
use kreon_replica::machine::Timing;
use kreon_replica::machine::primary::{Met, Phase, ReadId};
use kreon_wire::{Address as Place, Frame, Member, Packet, ProcessId, Role, ServerId, ServerNode};

use super::coordinator::Remote;
use super::words::{GROUP, Ranges, Reply, Request, Status, key_bytes};

/// Name of the cluster.
pub const CLUSTER: &str = "example";

/// A server's settings that do not depend on what it is.
pub fn server_node(server: ServerId, links: &Links) -> ServerNode {
    let address = links.address().map(|at| at.to_string());
    let address = address.unwrap_or_default();
    ServerNode {
        server,
        client_address: address.clone(),
        peer_address: address,
        domain: "this machine".to_owned(),
    }
}

/// A new start of a server.
pub fn start_of(server: u32) -> std::io::Result<Member> {
    let mut process = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut process)?;
    Ok(Member {
        server: ServerId(server),
        process: ProcessId(process),
    })
}

/// Where links of a process begin.
pub fn links_settings(me: Member) -> LinksSettings {
    LinksSettings {
        me,
        listen_at: Address::new("127.0.0.1:0"),
        connect: Duration::from_millis(1000),
    }
}

/// How long is waited for what, where a server is silent after so long.
pub fn timing(silence_ms: u32) -> Timing {
    let silence_us = u64::from(silence_ms) * 1000;
    Timing {
        silence_us,
        lease_us: silence_us,
        grace_us: 2 * silence_us,
        seal_patience_us: silence_us,
        attempt_us: silence_us,
        beat_every_us: silence_us / 4,
    }
}

/// Arguments: number, address of the coordinator, file, memory in MiB, silence in ms. Ends with the parent.
pub fn serve(mut args: impl Iterator<Item = String>) -> Result<(), Box<dyn Error>> {
    let mut next = || args.next().ok_or("an argument is missing");
    let server: u32 = next()?.parse()?;
    let coordinator: SocketAddr = next()?.parse()?;
    let volume = Arc::new(FileVolume::new(next()?));
    let memory_mib: usize = next()?.parse()?;
    let silence_ms: u32 = next()?.parse()?;
    let me = start_of(server)?;
    let fabric = Arc::new(TcpFabric::new(TcpSettings::new(CLUSTER, None))?);
    let host = Store::new();
    let links = Links::start(
        fabric,
        links_settings(me),
        Arc::clone(&host) as Arc<dyn Clients>,
    )?;
    let node = server_node(me.server, &links);
    host.links
        .set(Arc::clone(&links))
        .map_err(|_| "links twice")?;
    let begin = Box::new(move || {
        Remote::begin(coordinator, silence_ms)
            .map(|session| Arc::new(session) as Arc<dyn Coordinator>)
    });
    let asking = Asking::new((Paths::new(CLUSTER), begin), (me, node), false);
    let timing = timing(silence_ms);
    let settings = ServerSettings {
        timing,
        mastered: Vec::new(),
    };
    let shared = Arc::clone(&links);
    let running = Server::start(settings, shared, asking)?;
    let options = Options {
        memory_bytes: memory_mib << 20,
        // At the end the files are compared: nothing is to be written then.
        idle_reorganisation: false,
        ..Options::default()
    };
    let log_bytes = (options.memory_bytes as u64 / 16).clamp(4 << 20, 32 << 20);
    let settings = GroupSettings {
        id: GROUP,
        options,
        capacity: Capacity {
            log_bytes,
            ..Capacity::default()
        },
        timing,
    };
    let group = running.add_group(settings, volume, Arc::clone(&host) as Arc<dyn Host>)?;
    host.group.set(group).map_err(|_| "a group twice")?;
    // Nothing more is to be done here until the parent is gone.
    let mut nothing = [0];
    while std::io::stdin().read(&mut nothing)? > 0 {}
    Ok(())
}

/// A client's link.
struct Client(Arc<dyn Link>);

impl Client {
    fn answer(&self, number: u64, reply: &Reply) {
        let bytes = reply.encode();
        let to = Place {
            group: GROUP,
            number,
            ..Place::default()
        };
        let packet = Packet::reply(&to, &bytes);
        // A client that reads nothing gets nothing.
        let _ = self
            .0
            .send(&[IoSlice::new(packet.head()), IoSlice::new(&bytes)]);
    }
}

/// A read that is not shown yet: the client, its number, and the value.
type Waiting = (Arc<Client>, u64, Option<Vec<u8>>);

/// The store, while this server is its primary, and replies that wait.
struct Store {
    me: Weak<Self>,
    state: Mutex<State>,
    group: OnceLock<Arc<Group>>,
    links: OnceLock<Arc<Links>>,
}

#[derive(Default)]
struct State {
    serving: Option<Serving>,
    /// Replies to puts: the client, and its number.
    replies: Replies<(Arc<Client>, u64)>,
    reads: HashMap<ReadId, Waiting>,
    last_read: u64,
}

impl Store {
    fn new() -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            state: Mutex::default(),
            group: OnceLock::new(),
            links: OnceLock::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves one client until its link ends.
    fn attend(&self, client: &Arc<Client>) {
        let mut events = Vec::new();
        let mut region: Option<(Arc<Engine>, Arc<RegionState>)> = None;
        while client.0.poll(&mut events, Duration::from_secs(1)).is_ok() {
            let serving = self.state().serving.clone();
            let engine = serving.filter(|s| s.takes_writes).map(|s| s.engine);
            // The one of the office before ends.
            region =
                region.filter(|(held, _)| engine.as_ref().is_some_and(|e| Arc::ptr_eq(held, e)));
            if region.is_none()
                && let Some(engine) = engine
                && let Ok(found) = engine.region_with("values", Durability::Buffered)
            {
                region = Some((engine, found));
            }
            for event in events.drain(..) {
                if let Event::Packet(bytes) = event
                    && let Ok(frame) = Frame::open(&bytes, Role::Client)
                    && let Ok(Packet::Request(body)) = Packet::decode(&frame)
                    && let Ok(request) = Request::decode(body)
                {
                    let number = frame.header().number;
                    self.answer(client, number, &request, region.as_ref());
                }
            }
        }
    }

    fn answer(
        &self,
        client: &Arc<Client>,
        number: u64,
        request: &Request<'_>,
        region: Option<&(Arc<Engine>, Arc<RegionState>)>,
    ) {
        if let Request::Status = request {
            return client.answer(number, &Reply::Status(self.status()));
        }
        let Some((engine, region)) = region else {
            return client.answer(number, &Reply::Refused);
        };
        let answered = match request {
            Request::Put(key, value) => self.put(client, number, (engine, region), (*key, value)),
            Request::Get(key) => self.get(client, number, (engine, region), *key),
            Request::Occupied => self.occupied().map(|ranges| {
                client.answer(number, &Reply::Occupied(ranges));
            }),
            Request::Verify => engine.verify().map(|found| {
                found
                    .problems
                    .iter()
                    .for_each(|problem| eprintln!("{problem}"));
                client.answer(number, &Reply::Verified(found.problems.len() as u64));
            }),
            Request::Status => Ok(()),
        };
        if let Err(error) = answered {
            eprintln!("a request fails: {error}");
            client.answer(number, &Reply::Refused);
        }
    }

    fn put(
        &self,
        client: &Arc<Client>,
        number: u64,
        (engine, region): (&Engine, &RegionState),
        (key, value): (u64, &[u8]),
    ) -> kreon_base::Result<()> {
        let end = engine.write_ahead(&[Operation {
            region,
            key: &key_bytes(key),
            value: Some(value),
            is_range: false,
            terms: Terms::default(),
        }])?;
        let reply = (Arc::clone(client), number);
        let leaves = self.state().replies.put(end, reply);
        if leaves.is_some() {
            client.answer(number, &Reply::Done);
        }
        Ok(())
    }

    fn get(
        &self,
        client: &Arc<Client>,
        number: u64,
        (engine, region): (&Engine, &RegionState),
        key: u64,
    ) -> kreon_base::Result<()> {
        let (value, seen) = engine.get_seen(region, &key_bytes(key), <[u8]>::to_vec)?;
        let (unlanded_from, tail) = (engine.unlanded_from(), engine.log_tail());
        let met = seen.newest.map(|start| Met {
            start,
            end: tail,
            unlanded_from,
            tail,
        });
        let mut state = self.state();
        state.last_read += 1;
        let read = ReadId(state.last_read);
        state
            .reads
            .insert(read, (Arc::clone(client), number, value));
        drop(state);
        if let Some(group) = self.group.get() {
            group.read(read, met);
        }
        Ok(())
    }

    fn status(&self) -> Status {
        let Some(group) = self.group.get() else {
            return Status::default();
        };
        let set = group.set();
        let moments = group.moments();
        Status {
            is_serving: set
                .as_ref()
                .is_some_and(|(phase, _)| *phase == Phase::Serving),
            members: set.map_or(0, |(_, members)| members.len() as u64),
            sent_bytes: self.links.get().map_or((0, 0), |links| links.sent_bytes()),
            moments: [
                moments.sealed_us,
                moments.equal_us,
                moments.opened_us,
                moments.serving_us,
            ],
        }
    }

    /// Makes everything durable on all members, and lists what is in use: pages, and the log up to its end.
    fn occupied(&self) -> kreon_base::Result<Ranges> {
        let Some(store) = self.group.get().and_then(|group| group.store()) else {
            return Ok(Vec::new());
        };
        let engine = store.engine();
        engine.checkpoint()?;
        engine.sync()?;
        store.mirror().barrier()?;
        let occupied = engine.occupied()?;
        let page_bytes = kreon_base::PAGE_BYTES as u64;
        let pages = occupied.pages.iter();
        let mut ranges: Ranges = pages
            .map(|(first, count)| (first.offset_bytes(), count * page_bytes))
            .collect();
        let (sequence, within) = kreon_format::place_of(engine.log_tail());
        for log in occupied.log.iter().filter(|log| log.log.0 == 0) {
            let len_bytes = match log.sequence.cmp(&sequence) {
                std::cmp::Ordering::Less => kreon_base::SEGMENT_BYTES,
                std::cmp::Ordering::Equal => within.into(),
                std::cmp::Ordering::Greater => 0,
            };
            ranges.push((log.segment.offset_bytes(), len_bytes));
        }
        Ok(ranges)
    }
}

impl Host for Store {
    fn serve(&self, serving: Serving) {
        self.state().serving = Some(serving);
    }

    fn take_writes(&self, takes: bool) {
        if let Some(serving) = &mut self.state().serving {
            serving.takes_writes = takes;
        }
    }

    fn acknowledge(&self, upto: Lsn) {
        let mut released = Vec::new();
        self.state().replies.release(upto, &mut released);
        // Puts of one client are appended in the order of their numbers: the last one stands for all before it.
        let mut last: Option<(Arc<Client>, u64)> = None;
        for (client, number) in released {
            match &mut last {
                Some((same, held)) if Arc::ptr_eq(same, &client) => *held = number.max(*held),
                _ => {
                    if let Some((client, number)) = last.replace((client, number)) {
                        client.answer(number, &Reply::Done);
                    }
                }
            }
        }
        if let Some((client, number)) = last {
            client.answer(number, &Reply::Done);
        }
    }

    fn show(&self, read: ReadId) {
        let shown = self.state().reads.remove(&read);
        if let Some((client, number, value)) = shown {
            client.answer(number, &Reply::Value(value));
        }
    }

    fn drop_read(&self, read: ReadId) {
        let dropped = self.state().reads.remove(&read);
        if let Some((client, number, _)) = dropped {
            client.answer(number, &Reply::Refused);
        }
    }

    fn leave_office(&self) {
        let mut state = self.state();
        state.serving = None;
        // Nobody knows what becomes of these.
        drop(state.replies.end());
    }
}

impl Clients for Store {
    fn linked(&self, link: Arc<dyn Link>) {
        let (store, client) = (self.me.upgrade(), Arc::new(Client(link)));
        std::thread::spawn(move || {
            if let Some(store) = store {
                store.attend(&client);
            }
        });
    }
}
