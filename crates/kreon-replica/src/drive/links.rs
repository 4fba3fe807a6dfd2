//! Connections to other servers: one for control messages, which must not queue behind pages, and one for the streams of all
//! groups of which this server is primary and the other one a backup.
//!
//! A control message may be lost: whoever waits for an answer has a clock. Each link has a thread that polls it and hands on
//! what comes in, without storage work.

use std::collections::HashMap;
use std::io::IoSlice;
use std::sync::{Arc, OnceLock, Weak};
use std::thread::Builder;
use std::time::Duration;

use kreon_base::{Error, ErrorKind, Result};
use kreon_fabric::{Address, Bytes, Event, Fabric, Link, Listening, PeerId, Together, Welcome};
use kreon_sync::{AtomicBool, AtomicU64, Mutex, Ordering};
use kreon_wire::{Member, ProcessId, Reason, Role, ServerId, Violation, ViolationCounts};

use super::own::Own;
use crate::mirror::Carrier;

/// A thread that polls looks so often whether it is to end.
const PATIENCE: Duration = Duration::from_secs(1);

/// Messages that wait for one connection; more are lost.
const WAITING_MAX: usize = 64;

/// What a process may set of its links.
#[derive(Clone, Debug)]
pub struct LinksSettings {
    /// This start of this server.
    pub me: Member,
    /// Where it listens.
    pub listen_at: Address,
    /// How long a connection may take.
    pub connect: Duration,
}

/// Takes links of clients. Called by the thread that serves all connections: it must not wait.
pub trait Clients: Send + Sync {
    /// A new one, which the callee polls.
    fn linked(&self, link: Arc<dyn Link>);
}

/// Takes what comes in from other servers.
pub(super) trait Receiver: Send + Sync {
    fn control(&self, from: Member, packet: &[u8]) -> Result<(), Violation>;
    fn stream(&self, wire: &Arc<Wire>, packets: &[Bytes]) -> Result<(), Violation>;
    /// A stream link that was busy takes packets again.
    fn room(&self, wire: &Arc<Wire>);
    fn closed(&self, wire: &Arc<Wire>, why: &Error);
    /// There is no connection to be had.
    fn unreachable(&self, server: ServerId);
}

/// A link whose bytes are counted.
pub(super) struct Wire {
    link: Arc<dyn Link>,
    sent_bytes: Arc<AtomicU64>,
}

impl Wire {
    pub fn peer(&self) -> PeerId {
        self.link.peer()
    }

    pub fn close(&self, why: &str) {
        self.link.close(why);
    }

    pub fn send(&self, packet: &[u8]) -> Result<()> {
        self.carry(&[IoSlice::new(packet)])
    }
}

impl Carrier for Wire {
    fn carry(&self, parts: &[IoSlice<'_>]) -> Result<()> {
        self.link.send(parts)?;
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        self.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(())
    }
}

#[derive(Default)]
struct Peer {
    control: Option<Arc<Wire>>,
    waiting: Vec<(Option<ProcessId>, Vec<u8>)>,
    is_connecting: bool,
}

/// See the module's text.
pub struct Links {
    me: Weak<Self>,
    settings: LinksSettings,
    fabric: Arc<dyn Fabric>,
    clients: Arc<dyn Clients>,
    receiver: OnceLock<Weak<dyn Receiver>>,
    own: Own,
    addresses: Mutex<HashMap<ServerId, Address>>,
    peers: Mutex<HashMap<ServerId, Peer>>,
    streams: Mutex<HashMap<ServerId, Arc<Wire>>>,
    all: Mutex<Vec<Weak<Wire>>>,
    listening: Mutex<Option<Box<dyn Listening>>>,
    control_bytes: Arc<AtomicU64>,
    stream_bytes: Arc<AtomicU64>,
    violations: ViolationCounts,
    is_over: AtomicBool,
}

impl Links {
    /// Listens.
    ///
    /// # Errors
    /// Those of the fabric.
    pub fn start(
        fabric: Arc<dyn Fabric>,
        settings: LinksSettings,
        clients: Arc<dyn Clients>,
    ) -> Result<Arc<Self>> {
        let at = settings.listen_at.clone();
        let links = Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            settings,
            fabric: Arc::clone(&fabric),
            clients,
            receiver: OnceLock::new(),
            own: Own::default(),
            addresses: Mutex::default(),
            peers: Mutex::default(),
            streams: Mutex::default(),
            all: Mutex::default(),
            listening: Mutex::new(None),
            control_bytes: Arc::default(),
            stream_bytes: Arc::default(),
            violations: ViolationCounts::new(),
            is_over: AtomicBool::new(false),
        });
        let listening = fabric.listen(&at, Arc::clone(&links) as Arc<dyn Welcome>)?;
        *links.listening.lock() = Some(listening);
        Ok(links)
    }

    /// This start of this server.
    pub fn me(&self) -> Member {
        self.settings.me
    }

    /// Where it listens.
    pub fn address(&self) -> Option<Address> {
        self.listening
            .lock()
            .as_ref()
            .map(|listening| listening.address())
    }

    /// Bytes that were sent on links for streams and on those for control messages.
    pub fn sent_bytes(&self) -> (u64, u64) {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (of(&self.stream_bytes), of(&self.control_bytes))
    }

    /// Packets of other servers that were not right, by class. Each closed its link.
    pub fn violations(&self) -> &ViolationCounts {
        &self.violations
    }

    pub(super) fn hand_to(&self, receiver: Weak<dyn Receiver>) {
        self.own.hand_to(self.settings.me, Weak::clone(&receiver));
        let _ = self.receiver.set(receiver);
    }

    pub(super) fn learn_address(&self, server: ServerId, address: Address) {
        self.addresses.lock().insert(server, address);
    }

    /// Sends a control message to a server, in this start of it if one is named. Never waits.
    pub(super) fn send(&self, to: ServerId, start: Option<ProcessId>, packet: Vec<u8>) {
        let me = self.settings.me;
        if to == me.server {
            if start.is_none_or(|start| start == me.process) {
                self.own.send(packet);
            }
            return;
        }
        let mut peers = self.peers.lock();
        let peer = peers.entry(to).or_default();
        if let Some(wire) = &peer.control {
            if start.is_some_and(|start| wire.peer().member.process != start) {
                return; // that start of the server is gone
            }
            match wire.send(&packet) {
                Err(error) if error.kind() != ErrorKind::Busy => peer.control = None,
                _ => return,
            }
        }
        if peer.waiting.len() < WAITING_MAX {
            peer.waiting.push((start, packet));
        }
        if !std::mem::replace(&mut peer.is_connecting, true) {
            drop(peers);
            self.spawn("kreon-connect", move |links| links.connect_control(to));
        }
    }

    fn connect_control(&self, to: ServerId) {
        let connected = self.connect(to, Role::PeerControl);
        let mut peers = self.peers.lock();
        let peer = peers.entry(to).or_default();
        peer.is_connecting = false;
        let waiting = std::mem::take(&mut peer.waiting);
        let wire = match connected {
            Ok(wire) => wire,
            Err(error) => {
                drop(peers);
                tracing::debug!(%error, server = to.0, "no connection");
                // Where it is may not have been learned yet: that says nothing of the server.
                let is_known = error.kind() != ErrorKind::NotFound;
                if let Some(receiver) = self.receiver().filter(|_| is_known) {
                    receiver.unreachable(to);
                }
                return;
            }
        };
        peer.control = Some(Arc::clone(&wire));
        for (start, packet) in waiting {
            if start.is_none_or(|start| wire.peer().member.process == start) {
                let _ = wire.send(&packet);
            }
        }
        drop(peers);
        self.poll(&wire);
    }

    /// The link for streams to this member, made if there is none. Waits.
    pub(super) fn stream_to(&self, to: Member) -> Result<Arc<Wire>> {
        let held = self.streams.lock().get(&to.server).cloned();
        if let Some(wire) = held.filter(|wire| wire.peer().member == to) {
            return Ok(wire);
        }
        let wire = self.connect(to.server, Role::PeerStream)?;
        if wire.peer().member != to {
            wire.close("another start of the server");
            return Err(Error::new(
                ErrorKind::Closed,
                "another start of the server answers",
            ));
        }
        self.streams.lock().insert(to.server, Arc::clone(&wire));
        let polled = Arc::clone(&wire);
        self.spawn("kreon-stream", move |links| links.poll(&polled));
        Ok(wire)
    }

    fn connect(&self, to: ServerId, role: Role) -> Result<Arc<Wire>> {
        let address = self.addresses.lock().get(&to).cloned();
        let address = address
            .ok_or_else(|| Error::new(ErrorKind::NotFound, "the server has no known address"))?;
        let member = self.settings.me;
        let me = PeerId { member, role };
        let link = self.fabric.connect(&address, &me, self.settings.connect)?;
        if link.peer().member.server != to {
            link.close("another server");
            return Err(Error::new(ErrorKind::Closed, "another server answers"));
        }
        Ok(self.wire(link))
    }

    fn wire(&self, link: Arc<dyn Link>) -> Arc<Wire> {
        let sent_bytes = match link.peer().role {
            Role::PeerStream => &self.stream_bytes,
            _ => &self.control_bytes,
        };
        let wire = Arc::new(Wire {
            link,
            sent_bytes: Arc::clone(sent_bytes),
        });
        let mut all = self.all.lock();
        all.retain(|held| held.strong_count() > 0);
        all.push(Arc::downgrade(&wire));
        wire
    }

    /// Hands on what comes in until the link ends.
    fn poll(&self, wire: &Arc<Wire>) {
        let (mut events, mut packets) = (Vec::new(), Vec::new());
        while !self.is_over.load(Ordering::Acquire) {
            let polled = wire.link.poll(&mut events, PATIENCE);
            let Some(receiver) = self.receiver() else {
                break;
            };
            // What is sent because of it leaves together: answers to clients, above all.
            let _together = Together::begin();
            let mut outcome = Ok(());
            let mut ended = polled.err();
            for event in events.drain(..) {
                match event {
                    Event::Packet(packet) => packets.push(packet),
                    Event::Room => receiver.room(wire),
                    Event::Closed(error) => ended = Some(error),
                }
            }
            if !packets.is_empty() {
                outcome = hand_on(&*receiver, wire, &packets);
                packets.clear();
            }
            if let Err(violation) = outcome {
                tracing::warn!(?violation, peer = ?wire.peer(), "a peer sends what it must not");
                self.violations.count(violation);
                wire.close("a packet that is not right");
                ended.get_or_insert(violation.into());
            }
            if let Some(error) = ended {
                self.forget(wire);
                return receiver.closed(wire, &error);
            }
        }
        wire.close("the server ends");
    }

    fn forget(&self, wire: &Arc<Wire>) {
        let server = wire.peer().member.server;
        let is_it = |held: &Arc<Wire>| Arc::ptr_eq(held, wire);
        let mut streams = self.streams.lock();
        if streams.get(&server).is_some_and(is_it) {
            streams.remove(&server);
        }
        drop(streams);
        if let Some(peer) = self.peers.lock().get_mut(&server)
            && peer.control.as_ref().is_some_and(is_it)
        {
            peer.control = None;
        }
    }

    fn receiver(&self) -> Option<Arc<dyn Receiver>> {
        self.receiver.get().and_then(Weak::upgrade)
    }

    fn spawn(&self, name: &str, run: impl FnOnce(&Self) + Send + 'static) {
        let Some(links) = self.me.upgrade() else {
            return;
        };
        let thread = Builder::new().name(name.to_owned());
        if let Err(error) = thread.spawn(move || run(&links)) {
            tracing::error!(%error, "no thread for a link can be started");
        }
    }

    /// Ends all links.
    pub fn close(&self) {
        self.is_over.store(true, Ordering::Release);
        drop(self.listening.lock().take());
        self.own.close();
        for wire in self.all.lock().iter().filter_map(Weak::upgrade) {
            wire.close("the server ends");
        }
    }
}

fn hand_on(receiver: &dyn Receiver, wire: &Arc<Wire>, packets: &[Bytes]) -> Result<(), Violation> {
    let peer = wire.peer();
    match peer.role {
        Role::PeerStream => receiver.stream(wire, packets),
        _ => packets
            .iter()
            .try_for_each(|packet| receiver.control(peer.member, packet)),
    }
}

impl Welcome for Links {
    fn me(&self) -> Member {
        self.settings.me
    }

    fn judge(&self, _: &PeerId) -> Result<(), Reason> {
        match self.is_over.load(Ordering::Acquire) {
            true => Err(Reason::Closing),
            false => Ok(()),
        }
    }

    fn linked(&self, link: Arc<dyn Link>) {
        let peer = link.peer();
        if peer.role == Role::Client {
            return self.clients.linked(link);
        }
        let wire = self.wire(link);
        if peer.role == Role::PeerControl {
            let mut peers = self.peers.lock();
            let known = peers.entry(peer.member.server).or_default();
            known.control = Some(Arc::clone(&wire));
        }
        self.spawn("kreon-link", move |links| links.poll(&wire));
    }
}
