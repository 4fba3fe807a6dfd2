//! Requests of clients, at a server: refused, or taken by the primary's machine.

use kreon_base::Lsn;
use kreon_client::Reply;
use kreon_replica::machine::Term;
use kreon_replica::machine::primary::{Event, Met, Primary, ReadId};

use super::clients::Request;
use super::event::{Happening, Message};
use super::node::{Reading, Writing};
use super::run::Walk;
use crate::toy::{Entry, Place, Write};

impl Walk {
    /// A request arrives at a server, which may have been paused for long.
    pub(super) fn request(&mut self, at: Place, request: Request) {
        let node = &self.nodes[at];
        if node.me() != request.to {
            return self.not_sent(request); // no link to a process that has ended
        }
        let term = match &node.primary {
            Some(primary) if primary.term() == request.term => request.term,
            _ => {
                let knows = node.replica.promised();
                return self.reply(request, Reply::Moved(knows), None);
            }
        };
        match request.write {
            None => self.read(at, request),
            Some(_) if !node.takes_writes => self.reply(request, Reply::Unavailable, None),
            Some(write) => self.write(at, term, write, request),
        }
    }

    fn write(&mut self, at: Place, term: Term, write: Write, request: Request) {
        let records = 1 + 2 * self.dice.below(2);
        let sync = self.dice.below(8) == 0;
        let first = self.nodes[at].volume.log.len();
        for number in 0..records {
            self.nodes[at].volume.log.push(Entry {
                write,
                term: term.0 as u16,
                ends_unit: number + 1 == records,
            });
        }
        let end = self.nodes[at].volume.log.len();
        self.nodes[at].writes.push(Writing {
            write,
            end,
            sync,
            request,
        });
        let peers = self.nodes[at].primary.iter().flat_map(Primary::peers);
        let peers: Vec<_> = peers.map(|peer| peer.member).collect();
        for peer in peers {
            for index in first..end {
                let entry = self.nodes[at].volume.log[index];
                self.send_to(at, peer, Message::Log(term, index, entry));
            }
        }
        self.for_primary(at, None, Event::Appended(Lsn(end as u64)));
        if sync {
            let start = self.nodes[at].start;
            let us = 100 + self.flush_us(at, 4000);
            self.after(us, Happening::Flushed(at, start, term, end));
        }
    }

    /// Reads the newest value of a key: it meets the first record of that unit.
    fn read(&mut self, at: Place, request: Request) {
        let Some(primary) = &self.nodes[at].primary else {
            return;
        };
        let landed = primary.landed().0 as usize;
        self.reads += 1;
        let read = ReadId(self.reads);
        let log = &self.nodes[at].volume.log;
        let of_key = |entry: &Entry| self.judge.key(entry.write) == request.key;
        let found = log.iter().rposition(of_key);
        let met = found.map(|last| Met {
            start: Lsn(unit_of(log, last) as u64),
            end: Lsn(unit_of(log, last) as u64 + 1),
            unlanded_from: Lsn(match landed < log.len() {
                true => unit_of(log, landed),
                false => log.len(),
            } as u64),
            tail: Lsn(log.len() as u64),
        });
        let reading = Reading {
            read,
            saw: log.len(),
            found: found.map(|last| log[last].write),
            begun_us: self.now_us,
            request,
        };
        self.nodes[at].reads.push(reading);
        self.count("read");
        self.for_primary(at, None, Event::Read { read, met });
    }

    /// The office at `at` ended: its clients are told.
    pub(super) fn dismiss(&mut self, at: Place) {
        let (writes, reads) = self.nodes[at].leave_office();
        let knows = self.nodes[at].replica.promised();
        for writing in writes {
            self.reply(writing.request, Reply::Unknown, None);
        }
        for reading in reads {
            self.reply(reading.request, Reply::Moved(knows), None);
        }
    }
}

/// Where the unit begins that has the record at `at`.
fn unit_of(log: &[Entry], at: usize) -> usize {
    let before = log[..at].iter().rposition(|entry| entry.ends_unit);
    before.map_or(0, |before| before + 1)
}
