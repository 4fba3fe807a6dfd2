//! A client that speaks in bare messages.

use std::io::IoSlice;
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kreon_fabric::tcp::{TcpFabric, TcpSettings};
use kreon_fabric::{Address, Bytes, Event, Fabric, Link, PeerId};
use kreon_wire::{
    Address as Place, Backup, Bounds, Compared, Durability, FailureKind, Frame, GroupId, Member,
    Order, Packet, ProcessId, Reply, Request, Role, ScanPart, ServerId, SnapshotId, SplitList,
    Term, WriteBody,
};

use super::house::{CLUSTER, LIMIT};

/// Why a request was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    pub kind: FailureKind,
    pub term: Term,
    pub server: ServerId,
    pub text: String,
}

pub struct Raw {
    // It ends with its fabric.
    _fabric: TcpFabric,
    pub link: Arc<dyn Link>,
    last: u64,
    came: Vec<Bytes>,
}

/// What is owned of a page.
pub struct Page {
    pub entries: Vec<(Vec<u8>, Vec<u8>)>,
    pub snapshot: SnapshotId,
}

impl Raw {
    pub fn connect(to: &Address) -> Self {
        let fabric = TcpFabric::new(TcpSettings::new(CLUSTER, None)).unwrap();
        let link = link_of(&fabric, to);
        Self {
            _fabric: fabric,
            link,
            last: 0,
            came: Vec::new(),
        }
    }

    /// Sends a request; its number.
    pub fn send(&mut self, group: GroupId, body: &[u8]) -> u64 {
        self.last += 1;
        let to = Place {
            group,
            term: Term(0),
            number: self.last,
        };
        let packet = Packet::request(&to, body);
        self.link
            .send(&[IoSlice::new(packet.head()), IoSlice::new(body)])
            .unwrap();
        self.last
    }

    /// The packet that answers a request.
    pub fn receive(&mut self, number: u64) -> Result<Bytes, kreon_base::Error> {
        let start = Instant::now();
        loop {
            let is_it = |packet: &Bytes| {
                let frame = Frame::open(packet, Role::Client).unwrap();
                frame.header().number == number
            };
            if let Some(index) = self.came.iter().position(is_it) {
                return Ok(self.came.swap_remove(index));
            }
            assert!(start.elapsed() < LIMIT, "no answer");
            let mut events = Vec::new();
            self.link.poll(&mut events, Duration::from_secs(1))?;
            for event in events {
                match event {
                    Event::Packet(packet) => self.came.push(packet),
                    Event::Room => {}
                    Event::Closed(error) => return Err(error),
                }
            }
        }
    }

    fn ask<T>(
        &mut self,
        group: GroupId,
        body: &[u8],
        take: impl FnOnce(&Reply<'_>) -> Option<T>,
    ) -> Result<T, Failed> {
        let number = self.send(group, body);
        self.answer(number, take)
    }

    pub fn answer<T>(
        &mut self,
        number: u64,
        take: impl FnOnce(&Reply<'_>) -> Option<T>,
    ) -> Result<T, Failed> {
        let packet = self.receive(number).unwrap();
        let frame = Frame::open(&packet, Role::Client).unwrap();
        match Reply::decode(&frame).unwrap() {
            Reply::Failed(failure) => Err(Failed {
                kind: failure.kind,
                term: failure.term,
                server: failure.server,
                text: failure.text.to_owned(),
            }),
            reply => Ok(take(&reply).unwrap_or_else(|| panic!("{reply:?}"))),
        }
    }

    pub fn done(&mut self, number: u64) -> Result<(), Failed> {
        self.answer(number, |reply| matches!(reply, Reply::Done).then_some(()))
    }

    pub fn get(
        &mut self,
        group: GroupId,
        table: &str,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>, Failed> {
        self.get_at(group, table, key, SnapshotId(0))
    }

    pub fn get_at(
        &mut self,
        group: GroupId,
        table: &str,
        key: &[u8],
        snapshot: SnapshotId,
    ) -> Result<Option<Vec<u8>>, Failed> {
        let request = Request::Get {
            table,
            key,
            snapshot,
        };
        self.ask(group, &request.body(), |reply| match reply {
            Reply::Value(value) => Some(value.map(<[u8]>::to_vec)),
            _ => None,
        })
    }

    pub fn write(
        &mut self,
        group: GroupId,
        write: WriteBody,
        durability: Durability,
    ) -> Result<(), Failed> {
        let number = self.send(group, &write.finish(durability));
        self.done(number)
    }

    pub fn put(
        &mut self,
        group: GroupId,
        table: &str,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), Failed> {
        let number = self.send(group, &put_body(table, key, value));
        self.done(number)
    }

    pub fn snapshot(&mut self, group: GroupId) -> Result<SnapshotId, Failed> {
        self.ask(group, &Request::Snapshot.body(), |reply| match reply {
            Reply::Snapshot(id) => Some(*id),
            _ => None,
        })
    }

    pub fn release(&mut self, group: GroupId, snapshot: SnapshotId) -> Result<(), Failed> {
        let number = self.send(group, &Request::Release { snapshot }.body());
        self.done(number)
    }

    pub fn page(&mut self, group: GroupId, part: ScanPart<'_>) -> Result<Page, Failed> {
        self.ask(group, &Request::Scan(part).body(), |reply| match reply {
            Reply::Page(page) => Some(Page {
                entries: page
                    .iter()
                    .map(|(key, value)| (key.to_vec(), value.to_vec()))
                    .collect(),
                snapshot: page.snapshot,
            }),
            _ => None,
        })
    }

    /// All entries of a part of a table, in pages of `entries_max`; after each page `between` is called.
    pub fn scan(
        &mut self,
        group: GroupId,
        part: ScanPart<'_>,
        mut between: impl FnMut(usize),
    ) -> Vec<(Vec<u8>, Vec<u8>)> {
        let (mut all, mut snapshot): (Vec<(Vec<u8>, Vec<u8>)>, _) = (Vec::new(), part.snapshot);
        loop {
            let last = all.last().map(|(key, _)| key.clone());
            let mut bounds = part.bounds;
            if let Some(last) = &last {
                match part.is_reverse {
                    true => bounds.end = Bound::Excluded(last),
                    false => bounds.start = Bound::Excluded(last),
                }
            }
            let next = ScanPart {
                bounds,
                snapshot,
                ..part
            };
            let page = self.page(group, next).unwrap();
            all.extend(page.entries);
            if page.snapshot == SnapshotId(0) {
                return all;
            }
            snapshot = page.snapshot;
            between(all.len());
        }
    }

    pub fn order(&mut self, order: Order<'_>) -> Result<(), Failed> {
        let group = order.primary_of().unwrap_or(GroupId(0));
        let number = self.send(group, &Request::Order(order).body());
        self.done(number)
    }

    pub fn compare(&mut self, group: GroupId) -> Result<Compared, Failed> {
        let body = Request::Order(Order::Compare { group }).body();
        self.ask(group, &body, |reply| match reply {
            Reply::Compared(compared) => Some(*compared),
            _ => None,
        })
    }

    pub fn backups(&mut self, group: GroupId) -> Result<Vec<Backup>, Failed> {
        self.ask(group, &Request::Backups.body(), |reply| match reply {
            Reply::Backups(backups) => Some(backups.iter().collect()),
            _ => None,
        })
    }

    pub fn create_table(&mut self, table: &str, splits: &[&str]) -> Result<(), Failed> {
        let mut list = SplitList::new();
        splits
            .iter()
            .for_each(|split| list.push(split.as_bytes()).unwrap());
        self.order(Order::CreateTable {
            table,
            splits: list.splits(),
        })
    }

    /// Waits until the link has ended.
    pub fn wait_closed(&mut self) {
        let start = Instant::now();
        let mut events = Vec::new();
        while self
            .link
            .poll(&mut events, Duration::from_millis(100))
            .is_ok()
        {
            assert!(start.elapsed() < LIMIT, "the link lives");
            events.clear();
        }
    }
}

/// A link of a client.
pub fn link_of(fabric: &TcpFabric, to: &Address) -> Arc<dyn Link> {
    let me = PeerId {
        member: Member {
            server: ServerId(0),
            process: ProcessId([7; 16]),
        },
        role: Role::Client,
    };
    fabric.connect(to, &me, LIMIT).unwrap()
}

pub fn put_body(table: &str, key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut write = WriteBody::new();
    write.put(table, key, value).unwrap();
    write.finish(Durability::Replicated)
}

/// All of a table, in pages of so many entries.
pub fn all_of(table: &str, entries_max: u32) -> ScanPart<'_> {
    ScanPart {
        table,
        bounds: Bounds::ALL,
        is_reverse: false,
        keys_only: false,
        entries_max,
        bytes_max: 1 << 20,
        snapshot: SnapshotId(0),
    }
}
