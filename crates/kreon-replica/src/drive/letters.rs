//! Control messages, as they come in.

use kreon_wire::{Control, Frame, Kind, Member, Reason, Refused, ServerId, Stage, Term, Violation};

use super::equalising::{Package, is_other};
use super::group::{Core, Group};
use super::of_replica::report_of;
use crate::machine::replica::State;
use crate::machine::{BeatNumber, primary, replica};

impl Group {
    /// A control message of another server.
    pub(super) fn control(&self, from: Member, frame: &Frame<'_>) -> Result<(), Violation> {
        let message = Control::decode(frame)?;
        let mut core = self.core();
        core.message = Some((frame.header().kind, frame.address()));
        self.act_upon(&mut core, from, frame, message);
        core.message = None;
        Ok(())
    }

    fn act_upon(&self, core: &mut Core, from: Member, frame: &Frame<'_>, message: Control) {
        let (term, number) = (frame.header().term, frame.header().number);
        match message {
            Control::Seal => {
                core.seals.insert(from.server, number);
                let from = from.server;
                self.replica(core, replica::Event::Seal { from, term });
            }
            Control::Sealed { process, extent } => {
                let from = Member { process, ..from };
                let report = report_of(&extent);
                self.replica(core, replica::Event::Sealed { from, term, report });
            }
            Control::Equalise(equalise) => {
                let state = core.replica.state();
                if matches!(state, State::Sealed { term: sealed, .. } if *sealed == term) {
                    let package = Package::of(term, &equalise);
                    let of_candidate = package.superblock.map(|found| found.store);
                    if is_other(core.store(), of_candidate) {
                        tracing::error!(?from, "a candidate has another store");
                        return self.refuse(core, from, Reason::OtherStore);
                    }
                    core.package = Some(package);
                }
                let wanted = report_of(&equalise.extent);
                let event = replica::Event::Equalise {
                    from,
                    term,
                    top: wanted.slot,
                    log_end: wanted.log_end,
                };
                self.replica(core, event);
            }
            Control::Equal { extent } => self.on_equal(core, from, term, extent.log_end),
            Control::Open(open) => self.on_open(core, from, term, &open),
            Control::Opened { room, .. } => self.on_opened(core, from, term, room),
            Control::Attach(attach) => self.on_attach(core, from, term, attach),
            Control::Attached { room, .. } => self.on_attached(core, from, term, room),
            Control::Beat => {
                let beat = BeatNumber(number);
                self.replica(core, replica::Event::Beat { from, term, beat });
            }
            Control::Beaten { free_bytes } => self.on_beaten(core, from, frame, free_bytes),
            Control::Look => {
                self.replica(core, replica::Event::Look);
                self.primary(core, primary::Event::Look);
            }
            Control::Status => {
                let standing = Control::Standing(self.standing(core));
                self.tell(from, (core.replica.promised(), number), &standing);
            }
            Control::Standing(standing) => self.on_standing(core, from, term, standing.stage),
            Control::Refused(refused) => self.on_refused(core, from, &refused),
        }
    }

    /// How the group stands at another server. One that is not in the set says so to its primary, in the term of that, again
    /// and again: a message may be lost.
    fn on_standing(&self, core: &mut Core, from: Member, term: Term, stage: Stage) {
        let Some(office) = core.office.as_ref() else {
            return;
        };
        let machine = &office.machine;
        if machine.term() != term {
            return;
        }
        let is_peer = machine.peers().iter().any(|peer| peer.member == from);
        match stage {
            Stage::Absent | Stage::Stale => {
                self.primary(core, primary::Event::AttachAsked(from));
            }
            // It was removed, and has not heard of it.
            Stage::Joining | Stage::InSync if !is_peer => self.tell_of_end(core, from, term),
            _ => {}
        }
    }

    fn on_beaten(&self, core: &mut Core, from: Member, frame: &Frame<'_>, free_bytes: u64) {
        let Some(office) = &mut core.office else {
            return;
        };
        if office.machine.term() != frame.header().term {
            return;
        }
        office.free_bytes.insert(from, free_bytes);
        let peers = office.machine.peers();
        let of_peer = |peer: &primary::Peer| office.free_bytes.get(&peer.member).copied();
        let least = peers.iter().filter_map(of_peer).min();
        office
            .store
            .device()
            .set_free_bytes(least.unwrap_or(u64::MAX));
        let beat = BeatNumber(frame.header().number);
        self.primary(core, primary::Event::Beaten { from, beat });
    }

    fn on_refused(&self, core: &mut Core, from: Member, refused: &Refused) {
        self.replica(core, replica::Event::Refused(refused.term));
        self.primary(core, primary::Event::Refused(refused.term));
        let stream = core.replica.stream();
        match (refused.reason, refused.kind) {
            (Reason::NotInSet, _)
                if stream.is_some_and(|s| s.primary == from && s.term == refused.term) =>
            {
                self.replica(core, replica::Event::StreamClosed);
            }
            (Reason::NotReady, _) => {}
            (_, Kind::Open | Kind::Equalise) => {
                self.replica(core, replica::Event::Failed(from));
            }
            (_, Kind::Attach) => {
                if let Some(office) = &mut core.office {
                    office.asked.remove(&from);
                }
                self.primary(core, primary::Event::Failed(from));
            }
            _ => {}
        }
    }

    /// No connection to a server is to be had: its start that was in the set is gone, or cannot be reached.
    pub(super) fn unreachable(&self, server: ServerId) {
        let mut core = self.core();
        let (State::Equalising(office) | State::Opening(office)) = core.replica.state() else {
            return;
        };
        let mates = office.mates.iter().map(|mate| mate.0);
        let there: Vec<Member> = mates.filter(|mate| mate.server == server).collect();
        for member in there {
            self.replica(&mut core, replica::Event::Failed(member));
        }
    }
}
