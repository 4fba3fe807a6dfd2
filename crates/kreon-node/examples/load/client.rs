//! A client of bare messages.

use std::collections::HashSet;
use std::error::Error;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use kreon_base::ErrorKind;
use kreon_fabric::tcp::{TcpFabric, TcpSettings};
use kreon_fabric::{Address, Event, Fabric, Link, PeerId};
use kreon_wire::{
    Address as Place, Durability, Frame, GroupId, Member, Order, Packet, ProcessId, Reply, Request,
    Role, ServerId, SnapshotId, SplitList, Term, WriteBody,
};

use super::GROUP;
use super::processes::CLUSTER;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const TABLE: &str = "load";

/// No answer takes so long.
const LIMIT: Duration = Duration::from_secs(30);

pub struct Client {
    link: Arc<dyn Link>,
    _fabric: TcpFabric,
    last: u64,
    waiting: HashSet<u64>,
    events: Vec<Event>,
}

fn key(number: u64) -> [u8; 16] {
    // Scattered, so that spills meet all leaves.
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut key = [0; 16];
    key[..8].copy_from_slice(&mixed.to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

impl Client {
    pub fn connect(to: &Address) -> Outcome<Self> {
        let fabric = TcpFabric::new(TcpSettings::new(CLUSTER, None))?;
        let me = PeerId {
            member: Member {
                server: ServerId(0),
                process: ProcessId([7; 16]),
            },
            role: Role::Client,
        };
        let link = fabric.connect(to, &me, LIMIT)?;
        Ok(Self {
            link,
            _fabric: fabric,
            last: 0,
            waiting: HashSet::new(),
            events: Vec::new(),
        })
    }

    fn send(&mut self, group: GroupId, body: &[u8]) -> Outcome {
        self.last += 1;
        let to = Place {
            group,
            term: Term(0),
            number: self.last,
        };
        let packet = Packet::request(&to, body);
        loop {
            match self.link.send(&packet.parts()) {
                Err(error) if error.kind() == ErrorKind::Busy => self.receive()?,
                sent => break sent?,
            }
        }
        self.waiting.insert(self.last);
        Ok(())
    }

    /// Takes what came; an answer that is a failure is an error.
    fn receive(&mut self) -> Outcome {
        self.link.poll(&mut self.events, LIMIT)?;
        for event in self.events.drain(..) {
            match event {
                Event::Packet(packet) => {
                    let frame = Frame::open(&packet, Role::Client)?;
                    self.waiting.remove(&frame.header().number);
                    if let Reply::Failed(failure) = Reply::decode(&frame)? {
                        return Err(format!("{:?}: {}", failure.kind, failure.text).into());
                    }
                }
                Event::Room => {}
                Event::Closed(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn finish(&mut self, left: usize) -> Outcome {
        while self.waiting.len() > left {
            self.receive()?;
        }
        Ok(())
    }

    pub fn create_table(&mut self) -> Outcome {
        let list = SplitList::new();
        let order = Order::CreateTable {
            table: TABLE,
            splits: list.splits(),
        };
        self.send(GroupId(0), &Request::Order(order).body())?;
        self.finish(0)
    }

    pub fn put_all(&mut self, numbers: Range<u64>, depth: u64) -> Outcome {
        let value = [7; 1024];
        for number in numbers {
            self.finish(depth as usize - 1)?;
            let mut write = WriteBody::new();
            write.put(TABLE, &key(number), &value)?;
            self.send(GROUP, &write.finish(Durability::Replicated))?;
        }
        self.finish(0)
    }

    pub fn get(&mut self, number: u64) -> Outcome {
        let request = Request::Get {
            table: TABLE,
            key: &key(number),
            snapshot: SnapshotId(0),
        };
        self.send(GROUP, &request.body())?;
        self.finish(0)
    }
}
