//! What follows from an event without delay: the machines' actions carried out, and the events that come of them.

use std::collections::VecDeque;
use std::sync::Arc;

use kreon_base::Lsn;
use kreon_replica::machine::master;
use kreon_replica::machine::primary::{self, Primary};
use kreon_replica::machine::replica;
use kreon_replica::machine::{
    Answer, Ask, Known, Member, Moment, Report, ServerId, SlotMark, Term, Timing, Version,
};

use super::world::{GROUP, MASTER, NOW, Package};
use super::{Violation, World};
use crate::toy::{Place, place, place_of};

/// An event for a machine.
#[derive(Clone, Debug)]
pub enum Work {
    /// For a replica.
    Replica(Place, replica::Event),
    /// For a primary.
    Primary(Place, primary::Event),
    /// For the master.
    Master(master::Event),
    /// For the master, once its patience is over.
    MasterLater(Moment),
}

type Queue = VecDeque<Work>;

impl World {
    /// Handles `first`, and all that follows from it.
    pub fn settle(&mut self, first: Work) -> Result<(), Violation> {
        let mut queue = Queue::from([first]);
        while let Some(work) = queue.pop_front() {
            match work {
                Work::Replica(place, event) => self.for_replica(place, event, &mut queue)?,
                Work::Primary(place, event) => self.for_primary(place, event, &mut queue)?,
                Work::Master(event) => self.for_master(NOW, event, &mut queue),
                Work::MasterLater(now) => self.for_master(now, master::Event::Tick, &mut queue),
            }
        }
        Ok(())
    }

    /// The coordinator answers.
    pub(super) fn ask(&mut self, ask: &Ask, queue: &mut Queue) -> Answer {
        match ask {
            Ask::Read { .. } => Answer::Read((*self.config).clone()),
            Ask::Swap { expected, .. } if *expected != self.config.version => Answer::Conflict,
            Ask::Swap { next, .. } => {
                let version = Version(self.config.version.0 + 1);
                self.excuse(next);
                self.config = Arc::new(Known {
                    version,
                    config: next.clone(),
                });
                queue.push_back(Work::Master(master::Event::Look(GROUP)));
                Answer::Done(version)
            }
        }
    }

    fn for_master(&mut self, now: Moment, event: master::Event, queue: &mut Queue) {
        use master::Action;
        let mut actions = Vec::new();
        Arc::make_mut(&mut self.master).on(now, event, &mut actions);
        for action in actions {
            match action {
                Action::Ask(group, ticket, ask) => {
                    let answer = self.ask(&ask, queue);
                    let event = master::Event::Answer(group, ticket, answer);
                    queue.push_back(Work::Master(event));
                }
                Action::Seal { to, term, .. } => self.send_seal(MASTER, to, term, queue),
                Action::Hint { to, config, .. } => {
                    if let Some(place) = self.running(to) {
                        queue.push_back(Work::Replica(place, replica::Event::Hint(config)));
                    }
                }
                // No operator is here.
                Action::StandDown
                | Action::Probe { .. }
                | Action::HandOver { .. }
                | Action::RefusePromotion(_)
                | Action::RefuseLoss(_) => {}
            }
        }
    }

    /// A seal takes its time, unless the member was sealed already and only reports again.
    fn send_seal(&mut self, from: ServerId, to: Member, term: Term, queue: &mut Queue) {
        let Some(place) = self.running(to) else {
            return;
        };
        if self.at(place).is_sealed(term) {
            queue.push_back(Work::Replica(place, replica::Event::Seal { from, term }));
        } else if !self.at(place).seals.contains(&(from, term)) {
            let seals = &mut self.at_mut(place).seals;
            seals.retain(|(_, earlier)| *earlier >= term);
            seals.push((from, term));
            seals.sort_unstable();
        }
    }

    fn for_replica(
        &mut self,
        at: Place,
        event: replica::Event,
        queue: &mut Queue,
    ) -> Result<(), Violation> {
        if !self.at(at).up {
            return Ok(());
        }
        let mut actions = Vec::new();
        self.at_mut(at).replica.on(NOW, event, &mut actions);
        for action in actions {
            self.do_for_replica(at, action, queue)?;
        }
        Ok(())
    }

    fn do_for_replica(
        &mut self,
        at: Place,
        action: replica::Action,
        queue: &mut Queue,
    ) -> Result<(), Violation> {
        use replica::{Action, Event};
        match action {
            Action::Ask(ticket, ask) => {
                let answer = self.ask(&ask, queue);
                queue.push_back(Work::Replica(at, Event::Answer(ticket, answer)));
            }
            Action::Persist(stamp) => self.at_mut(at).volume.persisted = stamp,
            Action::Abandon => {
                let server = self.at_mut(at);
                (server.primary, server.asked, server.completing) = (None, None, None);
                server.opening = None;
            }
            Action::Drain => self.at_mut(at).volume.flush(),
            Action::ComputeEnd(term) => {
                let report = self.at(at).volume.report();
                queue.push_back(Work::Replica(at, Event::Ended { term, report }));
            }
            Action::Repair {
                from,
                term,
                slots,
                log_end,
            } => self.repair(at, from, slots, log_end, term, queue),
            Action::Open(term) => self.at_mut(at).opening = Some(term),
            Action::Serve { known, since } => self.serve(at, known, since, queue)?,
            message => self.send_for_replica(at, message, queue),
        }
        Ok(())
    }

    /// What a replica wants told to another server.
    fn send_for_replica(&mut self, at: Place, action: replica::Action, queue: &mut Queue) {
        use replica::{Action, Event};
        let me = self.member(at);
        match action {
            Action::Report { to, term, report } => {
                self.report(me, to, term, report, queue);
            }
            Action::Seal { to, term } => self.send_seal(me.server, to, term, queue),
            Action::Equalise {
                to,
                term,
                top,
                log_end,
            } => {
                if let Some(place) = self.running(to) {
                    let from = me;
                    self.at_mut(place).package = Some(Package {
                        from,
                        term,
                        top,
                        log_end,
                    });
                }
            }
            Action::Equal { to, term } => {
                if let Some(place) = self.running(to) {
                    let event = Event::Equal { from: me, term };
                    queue.push_back(Work::Replica(place, event));
                }
            }
            Action::AskAttach { to, term } if self.joining => {
                let asked = self.running(to).filter(|to| {
                    let primary = self.at(*to).primary.as_ref();
                    primary.is_some_and(|primary| primary.term() == term)
                });
                if let Some(to) = asked {
                    queue.push_back(Work::Primary(to, primary::Event::AttachAsked(me)));
                }
            }
            Action::Refuse { to, promised } if to != MASTER => {
                queue.push_back(Work::Replica(place_of(to), Event::Refused(promised)));
            }
            _ => {} // what nobody hears of here: beats, closed links
        }
    }

    fn report(&self, from: Member, to: ServerId, term: Term, report: Report, queue: &mut Queue) {
        queue.push_back(match to {
            MASTER => Work::Master(master::Event::Sealed {
                group: GROUP,
                from,
                term,
                report,
            }),
            server => Work::Replica(
                place_of(server),
                replica::Event::Sealed { from, term, report },
            ),
        });
    }

    fn repair(
        &mut self,
        at: Place,
        from: Option<Member>,
        slots: Option<SlotMark>,
        end: Lsn,
        term: Term,
        queue: &mut Queue,
    ) {
        let source = from.map_or(at, place);
        let log = self.at(source).volume.log.clone();
        let server = self.at_mut(at);
        server.volume.take_log(&log, end);
        if slots.is_some() {
            server.volume.slot = slots;
        }
        queue.push_back(Work::Replica(at, replica::Event::Repaired(term)));
    }

    fn serve(
        &mut self,
        at: Place,
        known: Known,
        since: Moment,
        queue: &mut Queue,
    ) -> Result<(), Violation> {
        let me = self.member(at);
        let end = self.at(at).volume.end();
        let term = known.config.term;
        let primary = Primary::new(me, known, end, since, NOW, Timing::default());
        let server = self.at_mut(at);
        server.primary = Some(primary);
        server.received.fill(end.0 as usize);
        self.check_office(at)?;
        queue.push_back(Work::Master(master::Event::Serves(GROUP, term)));
        Ok(())
    }

    fn for_primary(
        &mut self,
        at: Place,
        event: primary::Event,
        queue: &mut Queue,
    ) -> Result<(), Violation> {
        let Some(primary) = &mut self.at_mut(at).primary else {
            return Ok(());
        };
        let mut actions = Vec::new();
        primary.on(NOW, event, &mut actions);
        for action in actions {
            self.do_for_primary(at, action, queue)?;
        }
        Ok(())
    }

    fn do_for_primary(
        &mut self,
        at: Place,
        action: primary::Action,
        queue: &mut Queue,
    ) -> Result<(), Violation> {
        use primary::{Action, Event};
        match action {
            Action::Acknowledge(upto) => self.acknowledge(at, upto)?,
            Action::Ask(ticket, ask @ Ask::Read { .. }) => {
                let answer = self.ask(&ask, queue);
                queue.push_back(Work::Primary(at, Event::Answer(ticket, answer)));
            }
            Action::Ask(ticket, ask) => self.at_mut(at).asked = Some((ticket, ask)),
            Action::Attach(joiner) => self.attach(at, joiner, queue),
            Action::Complete(joiner) => {
                self.at_mut(at).completing = Some(joiner);
                self.complete(at, queue);
            }
            Action::Abandon => {
                let server = self.at_mut(at);
                (server.primary, server.asked, server.completing) = (None, None, None);
                queue.push_back(Work::Replica(at, replica::Event::Deposed));
            }
            // A flush is a step of its own; nobody reads here; a closed stream gets nothing, as its peer is gone.
            Action::Flush(_) | Action::Landed(_) | Action::DurableEverywhere(_) => {}
            Action::Show(_) | Action::Drop(_) | Action::Beat { .. } => {}
            Action::TakeWrites(_) | Action::Close(_) => {}
        }
        Ok(())
    }

    /// Everything is copied at once.
    fn attach(&mut self, at: Place, joiner: Member, queue: &mut Queue) {
        let Some(to) = self.running(joiner) else {
            return;
        };
        let (from, source) = (self.member(at), self.at(at).volume.clone());
        let Some(term) = self.at(at).primary.as_ref().map(Primary::term) else {
            return;
        };
        let landed = source.end();
        let volume = &mut self.at_mut(to).volume;
        volume.take_log(&source.log, landed);
        volume.slot = None;
        self.at_mut(at).received[to] = source.log.len();
        queue.push_back(Work::Replica(to, replica::Event::Attached { from, term }));
        let copied = primary::Event::Copied {
            peer: joiner,
            landed,
        };
        queue.push_back(Work::Primary(at, copied));
    }

    /// Whether the barrier of a checkpoint can end: everybody who counts runs.
    pub(super) fn can_complete(&self, at: Place) -> bool {
        let peers = self.at(at).primary.iter().flat_map(Primary::peers);
        let mut counted = peers.filter(|peer| peer.standing.is_counted());
        counted.all(|peer| self.running(peer.member).is_some())
    }

    /// The checkpoint that completes a joiner: everything before it becomes durable on all, and it itself.
    pub(super) fn complete(&mut self, at: Place, queue: &mut Queue) {
        if !self.can_complete(at) {
            return;
        }
        let (joiner, primary) = (self.at_mut(at).completing.take(), &self.at(at).primary);
        let (Some(joiner), Some(primary)) = (joiner, primary) else {
            return;
        };
        let term = primary.term();
        let peers: Vec<Member> = primary.peers().iter().map(|peer| peer.member).collect();
        let volume = &mut self.at_mut(at).volume;
        volume.checkpoint(term);
        volume.flush();
        let (slot, log) = (volume.slot, volume.log.clone());
        let end = volume.end();
        self.give_slot(&peers, slot);
        for peer in peers {
            let place = place(peer);
            self.at_mut(place).volume.take_log(&log, end);
            self.at_mut(at).received[place] = log.len();
        }
        queue.push_back(Work::Primary(at, primary::Event::Durable(end)));
        queue.push_back(Work::Replica(
            place(joiner),
            replica::Event::Completed(term),
        ));
        queue.push_back(Work::Primary(at, primary::Event::Completed(joiner)));
    }

    /// The checkpoint of a primary reaches these members.
    pub(super) fn give_slot(&mut self, members: &[Member], slot: Option<SlotMark>) {
        for member in members {
            if let Some(place) = self.running(*member) {
                self.at_mut(place).volume.slot = slot;
            }
        }
    }
}
