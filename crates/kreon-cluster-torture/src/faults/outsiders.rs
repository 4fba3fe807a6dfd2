//! Clients that servers have to bear: those that do nothing, have no key, or talk nonsense.

use std::io::{IoSlice, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kreon_fabric::tcp::{TcpFabric, TcpSettings};
use kreon_fabric::{Address, Event, Fabric, Key, Link, PeerId};
use kreon_sim::Dice;
use kreon_wire::{GroupId, Header, Kind, Member, ProcessId, Role, ServerId, Term};

use super::class::Class;
use crate::cluster::settings::Settings;
use crate::cluster::whole::Cluster;

/// Connections that do nothing.
const IDLE: usize = 1000;

/// Those of them that have proven who they are.
const IDLE_PROVEN: usize = 100;

/// What a server may have beyond the memory of its stores.
const BEYOND_BYTES: u64 = 1 << 30;

/// How long one attempt may take.
const LIMIT: Duration = Duration::from_secs(2);

/// A way to a server: a link, and the fabric that has its threads.
pub struct Way {
    _fabric: TcpFabric,
    /// The link.
    pub link: Arc<dyn Link>,
}

/// See the module's text.
pub struct Outsiders {
    dice: Dice,
    memory_mib: u32,
    idle: Vec<TcpStream>,
    links: Vec<Arc<dyn Link>>,
}

impl Outsiders {
    /// None yet.
    pub fn new(settings: &Settings, seed: u64) -> Self {
        Self {
            dice: Dice::new(seed),
            memory_mib: settings.memory_mib,
            idle: Vec::new(),
            links: Vec::new(),
        }
    }

    /// They come, mostly to one server.
    ///
    /// # Errors
    /// Somebody was let in who has no key.
    pub fn come(&mut self, class: Class, cluster: &Cluster, victim: u32) -> Result<(), String> {
        let seat = cluster.seats.iter().find(|seat| seat.number == victim);
        let address = seat.map(|seat| seat.address.clone()).unwrap_or_default();
        match class {
            Class::Idle => self.idle(cluster),
            Class::Keyless => self.without_key(&address),
            _ => self.talk_nonsense(cluster, &address),
        }
    }

    /// A link of somebody to a server, if it answers.
    ///
    /// # Errors
    /// The key cannot be read.
    pub fn link_to(&mut self, cluster: &Cluster, server: u32) -> Result<Option<Way>, String> {
        let fabric = fabric(Some(key(cluster)?))?;
        let seat = cluster.seats.iter().find(|seat| seat.number == server);
        let link = seat.and_then(|seat| {
            let to = Address::new(&seat.address);
            fabric.connect(&to, &self.anybody(), LIMIT).ok()
        });
        Ok(link.map(|link| Way {
            _fabric: fabric,
            link,
        }))
    }

    fn idle(&mut self, cluster: &Cluster) -> Result<(), String> {
        let fabric = fabric(Some(key(cluster)?))?;
        for number in 0..IDLE {
            let seat = &cluster.seats[number % cluster.seats.len()];
            if number < IDLE_PROVEN {
                let link = fabric.connect(&Address::new(&seat.address), &self.anybody(), LIMIT);
                // A server that is frozen or cut off takes none.
                self.links.extend(link);
                continue;
            }
            let address = seat
                .address
                .parse()
                .map_err(|_| "an address without a number")?;
            let stream = TcpStream::connect_timeout(&address, Duration::from_millis(50));
            self.idle.extend(stream);
        }
        Ok(())
    }

    fn without_key(&mut self, address: &str) -> Result<(), String> {
        let wrong = Key::new(b"a key that is another one").map_err(|error| error.to_string())?;
        for key in [Some(wrong), None] {
            let fabric = fabric(key)?;
            for role in [Role::Client, Role::PeerControl, Role::PeerStream] {
                let peer = PeerId {
                    role,
                    ..self.anybody()
                };
                if fabric.connect(&Address::new(address), &peer, LIMIT).is_ok() {
                    return Err(format!("{address} let in a {role:?} without the key"));
                }
            }
        }
        Ok(())
    }

    fn talk_nonsense(&mut self, cluster: &Cluster, address: &str) -> Result<(), String> {
        for _ in 0..50 {
            if let Ok(mut stream) = TcpStream::connect(address) {
                let bytes: Vec<u8> = (0..200).map(|_| self.dice.roll() as u8).collect();
                let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
                let _ = stream.write_all(&bytes);
                // The server closes it.
                let _ = stream.read(&mut [0; 64]);
            }
        }
        let fabric = fabric(Some(key(cluster)?))?;
        for _ in 0..50 {
            let Ok(link) = fabric.connect(&Address::new(address), &self.anybody(), LIMIT) else {
                continue;
            };
            self.nonsense_on(link.as_ref())?;
        }
        Ok(())
    }

    /// A packet that is no request: the link ends, or the answer is a failure.
    fn nonsense_on(&mut self, link: &dyn Link) -> Result<(), String> {
        let body: Vec<u8> = (0..8 + self.dice.below(300))
            .map(|_| self.dice.roll() as u8)
            .collect();
        let mut header = Header {
            kind: Kind::Request,
            body_bytes: body.len() as u32,
            group: GroupId(1 + self.dice.below(5) as u32),
            term: Term(self.dice.below(3)),
            number: 1 + self.dice.below(9),
            checksum: 0,
        };
        if self.dice.below(4) != 0 {
            header.checksum = header.checksum_with(&[&body]);
        }
        let head = header.encode();
        if link
            .send(&[IoSlice::new(&head), IoSlice::new(&body)])
            .is_err()
        {
            return Ok(());
        }
        let until = Instant::now() + LIMIT;
        let mut events = Vec::new();
        while Instant::now() < until {
            if link.poll(&mut events, Duration::from_millis(50)).is_err() {
                return Ok(());
            }
            if events
                .iter()
                .any(|event| matches!(event, Event::Closed(_) | Event::Packet(_)))
            {
                return Ok(());
            }
        }
        // A server that is frozen or cut off by another fault says nothing.
        Ok(())
    }

    /// They go, and have cost nothing that stays.
    ///
    /// # Errors
    /// A server has more memory than it may.
    pub fn leave(&mut self, cluster: &Cluster) -> Result<(), String> {
        let came = !self.idle.is_empty() || !self.links.is_empty();
        self.idle.clear();
        self.links.clear();
        let most = (u64::from(self.memory_mib) << 20) + BEYOND_BYTES;
        for seat in cluster.seats.iter().filter(|_| came) {
            let has = seat.process.resident_bytes().unwrap_or(0);
            if has > most {
                return Err(format!(
                    "server {} has {} MiB of memory, and may have {}",
                    seat.number,
                    has >> 20,
                    most >> 20
                ));
            }
        }
        Ok(())
    }

    fn anybody(&mut self) -> PeerId {
        let mut process = [0; 16];
        process.fill_with(|| self.dice.roll() as u8);
        PeerId {
            member: Member {
                server: ServerId(0),
                process: ProcessId(process),
            },
            role: Role::Client,
        }
    }
}

fn fabric(key: Option<Key>) -> Result<TcpFabric, String> {
    let settings = TcpSettings::new(Settings::CLUSTER, key);
    TcpFabric::new(settings).map_err(|error| error.to_string())
}

/// The key of the cluster.
fn key(cluster: &Cluster) -> Result<Key, String> {
    let bytes = std::fs::read(&cluster.key).map_err(|error| error.to_string())?;
    Key::new(bytes.trim_ascii()).map_err(|error| error.to_string())
}
