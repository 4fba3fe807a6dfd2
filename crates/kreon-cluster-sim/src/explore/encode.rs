//! A state as bytes: equal for states from which the same can happen. Tickets, moments and versions of long ago are left
//! out; versions count by their distance from the present one.

use kreon_replica::machine::master::Stage;
use kreon_replica::machine::primary::Primary;
use kreon_replica::machine::replica::{Candidacy, Mate, State, Stream};
use kreon_replica::machine::{Configuration, Known, Member, Report, Version};

use super::World;
use super::world::{GROUP, Server};
use crate::toy::{place, start};

/// Bytes of a state, one after the other.
struct Code<'a> {
    out: &'a mut Vec<u8>,
    now: Version,
}

impl World {
    /// Writes the state to `out`, which is emptied first.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.clear();
        let mut code = Code {
            out,
            now: self.config.version,
        };
        code.bytes(&[
            self.written as u8,
            self.acknowledged as u8,
            self.crashes,
            self.joins,
        ]);
        code.config(&self.config.config);
        for live in &self.live {
            code.bytes(&[live.map_or(u8::MAX, |start| start)]);
        }
        match self.master.stage(GROUP) {
            Some(Stage::Sealing { reports, term, .. }) => {
                code.bytes(&[1, term.0 as u8, reports.len() as u8]);
                for (member, report) in reports {
                    code.member(*member);
                    code.report(report);
                }
            }
            Some(Stage::Waiting) => code.bytes(&[2]),
            Some(Stage::Promoting { .. }) => code.bytes(&[3]),
            Some(Stage::Restored) => code.bytes(&[5]),
            _ => code.bytes(&[4]),
        }
        for server in &self.servers {
            code.server(server);
        }
    }
}

impl Code<'_> {
    fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    fn member(&mut self, member: Member) {
        self.bytes(&[(place(member) as u8) << 4 | start(member)]);
    }

    fn config(&mut self, config: &Configuration) {
        let flags = u8::from(config.after_loss) << 1 | u8::from(config.all_needed);
        self.bytes(&[config.term.0 as u8, config.in_sync.len() as u8, flags]);
        match config.primary {
            Some(primary) => self.member(primary),
            None => self.bytes(&[u8::MAX]),
        }
        for member in config.in_sync.iter() {
            self.member(*member);
        }
    }

    fn known(&mut self, known: &Known) {
        let behind = self.now.0 - known.version.0.min(self.now.0);
        self.bytes(&[behind as u8]);
        if behind > 0 {
            self.config(&known.config);
        }
    }

    fn report(&mut self, report: &Report) {
        let slot = report.slot;
        self.bytes(&[
            slot.incarnation.0 as u8,
            slot.epoch.0 as u8,
            report.log_end.0 as u8,
        ]);
    }

    fn stream(&mut self, stream: Stream) {
        self.bytes(&[stream.term.0 as u8]);
        self.member(stream.primary);
    }

    fn server(&mut self, server: &Server) {
        let volume = &server.volume;
        self.bytes(&[
            u8::from(server.up) << 7 | server.start,
            volume.log.len() as u8,
            volume.durable as u8,
            volume.persisted.term.0 as u8,
        ]);
        for entry in &volume.log {
            self.bytes(&[(entry.write as u8) << 4 | entry.term as u8]);
        }
        match volume.slot {
            Some(slot) => self.bytes(&[slot.incarnation.0 as u8, slot.epoch.0 as u8]),
            None => self.bytes(&[u8::MAX]),
        }
        if !server.up {
            return;
        }
        self.replica(server);
        if let Some(primary) = &server.primary {
            self.primary(server, primary);
        }
        self.bytes(&[u8::from(server.opening.is_some()) << 7 | server.seals.len() as u8]);
        for (from, term) in &server.seals {
            self.bytes(&[from.0 as u8, term.0 as u8]);
        }
        match &server.package {
            Some(package) => {
                self.stream(Stream {
                    term: package.term,
                    primary: package.from,
                });
                self.report(&Report {
                    slot: package.top,
                    log_end: package.log_end,
                });
            }
            None => self.bytes(&[0]),
        }
    }

    fn replica(&mut self, server: &Server) {
        let replica = &server.replica;
        self.bytes(&[replica.promised().0 as u8]);
        match replica.stream() {
            Some(stream) => self.stream(stream),
            None => self.bytes(&[0]),
        }
        match replica.state() {
            State::Absent => self.bytes(&[1]),
            State::Stale => self.bytes(&[2]),
            State::Joining(_) => self.bytes(&[3]),
            State::InSync(_) => self.bytes(&[4]),
            State::Sealing { .. } => self.bytes(&[5]),
            State::Sealed { term, report } => {
                self.bytes(&[6, term.0 as u8]);
                self.report(report);
            }
            State::Repairing(_) => self.bytes(&[7]),
            State::Equalising(office) => self.candidacy(8, office),
            State::Opening(office) => self.candidacy(9, office),
            State::Serving(term) => self.bytes(&[10, term.0 as u8]),
        }
    }

    fn candidacy(&mut self, tag: u8, office: &Candidacy) {
        let flags = u8::from(office.is_repaired) | u8::from(office.is_sent) << 1;
        self.bytes(&[tag, office.term().0 as u8, flags, office.mates.len() as u8]);
        self.known(&office.known);
        self.report(&office.own);
        for (member, mate, is_failed) in &office.mates {
            self.member(*member);
            match mate {
                Mate::Asked => self.bytes(&[1]),
                Mate::Told(report) => {
                    self.bytes(&[2]);
                    self.report(report);
                }
                Mate::Sent(report) => {
                    self.bytes(&[3]);
                    self.report(report);
                }
                Mate::Equal => self.bytes(&[4]),
            }
            self.bytes(&[u8::from(*is_failed)]);
        }
    }

    fn primary(&mut self, server: &Server, primary: &Primary) {
        self.bytes(&[
            primary.phase() as u8,
            primary.landed().0 as u8,
            primary.acknowledged().0 as u8,
            primary.peers().len() as u8,
        ]);
        self.known(primary.known());
        for peer in primary.peers() {
            self.member(peer.member);
            let received = server.received[place(peer.member)];
            self.bytes(&[
                peer.standing as u8 | u8::from(peer.is_failed) << 7,
                peer.landed.0 as u8,
                received as u8,
            ]);
        }
        self.bytes(&[u8::from(server.completing.is_some())]);
        match primary.changes_to() {
            Some(next) => {
                self.bytes(&[u8::from(server.asked.is_some()) + 1]);
                self.config(next);
            }
            None => self.bytes(&[0]),
        }
    }
}
