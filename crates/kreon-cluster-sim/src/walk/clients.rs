//! Clients write and read wherever a server believes to be in office.

use kreon_base::Lsn;
use kreon_replica::machine::primary::{Event, Met, Primary, ReadId};

use super::event::{Happening, Message};
use super::faults::Focus;
use super::node::{Reading, Writing};
use super::run::Walk;
use crate::toy::{Entry, Place};

/// Most writes of one walk.
const WRITES_MAX: usize = 4000;

impl Walk {
    pub(super) fn client(&mut self) {
        let us = 1000 + self.dice.below(8000);
        self.after(us, Happening::Client);
        let at = self.dice.below(self.nodes.len() as u64) as Place;
        self.after(1, Happening::Requested(at));
        if self.focus != Focus::Zombies && self.dice.below(300) == 0 {
            let us = self.dice.below(700 + self.way_us);
            self.after(us, Happening::Fails(at));
        }
    }

    /// A request arrives at a server, which may have been paused for long.
    pub(super) fn request(&mut self, at: Place) {
        if self.nodes[at].primary.is_none() {
            return;
        }
        match self.dice.below(3) {
            0 => self.write(at),
            1 => self.read(at),
            _ => {
                self.write(at);
                self.read(at);
            }
        }
    }

    fn write(&mut self, at: Place) {
        if !self.nodes[at].takes_writes || self.judge.writes() >= WRITES_MAX {
            return;
        }
        let Some(term) = self.nodes[at].primary.as_ref().map(Primary::term) else {
            return;
        };
        let write = self.judge.write();
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
        self.nodes[at].writes.push(Writing { write, end, sync });
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
            let us = 100 + self.dice.below(4000);
            self.after(us, Happening::Flushed(at, start, term, end));
        }
    }

    /// Reads the newest record: it meets the first one of the last unit.
    fn read(&mut self, at: Place) {
        // The office may have ended by the write before.
        let Some(landed) = self.nodes[at]
            .primary
            .as_ref()
            .map(|p| p.landed().0 as usize)
        else {
            return;
        };
        self.reads += 1;
        let read = ReadId(self.reads);
        let log = &self.nodes[at].volume.log;
        let met = log.last().map(|last| {
            let starts = log.iter().rposition(|entry| entry.write != last.write);
            let start = starts.map_or(0, |before| before + 1);
            let unlanded_from = log.get(landed).map_or(log.len(), |unit| {
                let before = log[..landed]
                    .iter()
                    .rposition(|entry| entry.write != unit.write);
                before.map_or(0, |before| before + 1)
            });
            Met {
                start: Lsn(start as u64),
                end: Lsn(start as u64 + 1),
                unlanded_from: Lsn(unlanded_from as u64),
                tail: Lsn(log.len() as u64),
            }
        });
        let saw = log.len();
        let begun_us = self.now_us;
        self.nodes[at].reads.push(Reading {
            read,
            saw,
            begun_us,
        });
        self.count("read");
        self.for_primary(at, None, Event::Read { read, met });
    }
}
