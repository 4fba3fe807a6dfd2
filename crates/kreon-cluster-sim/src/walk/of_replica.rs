//! What the machine of a replica wants done, and that of a master.

use std::collections::BTreeSet;

use kreon_base::Lsn;
use kreon_replica::machine::primary::{Phase, Primary};
use kreon_replica::machine::replica::{Action, Event, State};
use kreon_replica::machine::{Known, Member, Moment, SlotMark, Term, Timing, master, replica};

use super::event::{Asker, Happening, Message};
use super::judge::Broken;
use super::node::Checkpoint;
use super::run::Walk;
use crate::toy::{Place, place_of};

impl Walk {
    pub(super) fn for_replica(&mut self, at: Place, event: Event) {
        let now = self.nodes[at].clock(self.now_us);
        let mut actions = Vec::new();
        self.nodes[at].replica.on(now, event, &mut actions);
        for action in actions {
            self.do_for_replica(at, action);
        }
    }

    fn do_for_replica(&mut self, at: Place, action: Action) {
        let start = self.nodes[at].start;
        match action {
            Action::Ask(ticket, ask) => self.ask(at, Asker::Replica, ticket, ask),
            Action::Persist(stamp) => self.nodes[at].volume.persisted = stamp,
            Action::Abandon => self.dismiss(at),
            Action::Drain => {
                self.nodes[at].volume.drop_part_of_unit();
                self.nodes[at].volume.flush();
            }
            Action::ComputeEnd(term) => {
                let report = self.nodes[at].volume.report();
                let us = 500 + self.flush_us(at, 20_000);
                self.after(us, Happening::Ended(at, start, term, report));
            }
            Action::Report { to, term, report } => {
                self.send(at, to, None, Message::Sealed(term, report));
            }
            Action::Seal { to, term } => self.send_to(at, to, Message::Seal(term)),
            Action::Equalise {
                to,
                term,
                top,
                log_end,
            } => {
                let log = self.nodes[at].volume.log.as_slice().into();
                let end = log_end;
                self.send_to(
                    at,
                    to,
                    Message::Equalise {
                        term,
                        top,
                        end,
                        log,
                    },
                );
            }
            Action::Repair {
                from,
                term,
                slots,
                log_end,
            } => self.repair(at, from, term, slots, log_end),
            Action::Equal { to, term } => self.send_to(at, to, Message::Equal(term)),
            Action::Open(term) => self.open(at, term),
            Action::Serve { known, since } => self.serve(at, known, since),
            Action::AskAttach { to, .. } => self.send_to(at, to, Message::AskAttach),
            Action::Close(member) => self.forget(at, member),
            Action::StopFollowing => {}
            Action::Beaten { to, term, beat } => {
                self.send_to(at, to, Message::Beaten(term, beat));
            }
            Action::Refuse { to, promised } => {
                self.send(at, to, None, Message::Refused(promised));
            }
        }
    }

    fn repair(
        &mut self,
        at: Place,
        from: Option<Member>,
        term: Term,
        slots: Option<SlotMark>,
        end: Lsn,
    ) {
        let node = &mut self.nodes[at];
        if from.is_none() && slots > node.volume.slot {
            return self.break_with(Broken::NoSuperblock(term.0));
        }
        let log = match from {
            Some(_) => node.package.take().unwrap_or_default(),
            None => node.volume.log.clone(),
        };
        node.volume.take_log(&log, end);
        if slots.is_some() {
            node.volume.slot = slots;
        }
        let start = node.start;
        let us = 500 + self.flush_us(at, 20_000);
        self.after(us, Happening::Repaired(at, start, term));
    }

    /// The engine opens: its first checkpoint goes to all members.
    fn open(&mut self, at: Place, _term: Term) {
        let State::Opening(office) = self.nodes[at].replica.state() else {
            return;
        };
        let mates = office.mates.iter().map(|mate| mate.0).collect();
        self.begin_checkpoint(at, mates, None);
    }

    pub(super) fn begin_checkpoint(
        &mut self,
        at: Place,
        mates: BTreeSet<Member>,
        joiner: Option<Member>,
    ) {
        self.barriers += 1;
        let number = self.barriers;
        self.nodes[at].volume.flush();
        self.nodes[at].checkpoint = Some(Checkpoint {
            number,
            waits_for: mates,
            slot: None,
            joiner,
        });
        self.send_barrier(at);
        self.pass(at);
    }

    /// The term in which this server makes checkpoints.
    fn office_term(&self, at: Place) -> Option<Term> {
        let node = &self.nodes[at];
        match (&node.primary, node.replica.state()) {
            (Some(primary), _) => Some(primary.term()),
            (None, State::Opening(office)) => Some(office.term()),
            _ => None,
        }
    }

    fn send_barrier(&mut self, at: Place) {
        let (Some(term), Some(checkpoint)) = (self.office_term(at), &self.nodes[at].checkpoint)
        else {
            return;
        };
        let (number, slot) = (checkpoint.number, checkpoint.slot);
        let upto = self.nodes[at].volume.log.len();
        for to in checkpoint.waits_for.clone() {
            self.send_to(at, to, Message::Barrier(term, number, upto, slot));
        }
    }

    pub(super) fn on_passed(&mut self, at: Place, from: Member, term: Term, number: u64) {
        if self.office_term(at) != Some(term) {
            return;
        }
        if let Some(checkpoint) = &mut self.nodes[at].checkpoint
            && checkpoint.number == number
        {
            checkpoint.waits_for.remove(&from);
            self.pass(at);
        }
    }

    /// A member is waited for no longer.
    pub(super) fn forget(&mut self, at: Place, member: Member) {
        if let Some(checkpoint) = &mut self.nodes[at].checkpoint {
            checkpoint.waits_for.remove(&member);
            if checkpoint.joiner == Some(member) {
                self.nodes[at].checkpoint = None;
                return;
            }
            self.pass(at);
        }
    }

    /// A barrier may have ended.
    fn pass(&mut self, at: Place) {
        let Some(term) = self.office_term(at) else {
            return;
        };
        let Some(checkpoint) = self.nodes[at].checkpoint.clone() else {
            return;
        };
        if !checkpoint.waits_for.is_empty() {
            return;
        }
        if checkpoint.slot.is_some() {
            self.nodes[at].checkpoint = None;
            return match checkpoint.joiner {
                None => self.for_replica(at, Event::Opened(term)),
                Some(joiner) => self.completed(at, term, joiner),
            };
        }
        let mates: BTreeSet<Member> =
            match (&self.nodes[at].primary, self.nodes[at].replica.state()) {
                (Some(primary), _) => primary.peers().iter().map(|peer| peer.member).collect(),
                (None, State::Opening(office)) => office.mates.iter().map(|mate| mate.0).collect(),
                _ => BTreeSet::new(),
            };
        self.barriers += 1;
        let number = self.barriers;
        self.nodes[at].volume.checkpoint(term);
        let slot = self.nodes[at].volume.slot;
        self.nodes[at].checkpoint = Some(Checkpoint {
            number,
            waits_for: mates,
            slot,
            joiner: checkpoint.joiner,
        });
        self.send_barrier(at);
        self.pass(at);
    }

    fn serve(&mut self, at: Place, known: Known, since: Moment) {
        let me = self.nodes[at].me();
        self.count("term served");
        if !self.may_serve(at, &known) {
            return;
        }
        let now = self.nodes[at].clock(self.now_us);
        let end = self.nodes[at].volume.end();
        let primary = Primary::new(me, known, end, since, now, Timing::default());
        let node = &mut self.nodes[at];
        node.takes_writes = primary.phase() == Phase::Serving;
        node.durable_everywhere = end.0 as usize;
        node.primary = Some(primary);
    }

    /// What must hold when an office begins; whether the walk goes on.
    fn may_serve(&mut self, at: Place, known: &Known) -> bool {
        let (me, term) = (self.nodes[at].me(), known.config.term);
        let loss = self.loss_accepted.take();
        if let Some(loss) = loss {
            self.judge.give_up(&self.nodes[at].volume, loss);
            self.restored = None;
        }
        if self.restored.is_some() && !self.judge_restored(at, known) {
            return false;
        }
        if let Some(write) = self.judge.missing(&self.nodes[at].volume, term) {
            self.break_with(Broken::Lost(write, term.0));
        }
        if std::mem::take(&mut self.whole_set_failed) || loss.is_some() {
            let first = self.judge.newest(&self.nodes[at].volume.log);
            let wrong = self.history.begin_anew(first, self.now_us);
            self.explain(wrong);
        }
        if !self.judge.is_named(term, me) {
            self.break_with(Broken::Usurper(term.0));
        }
        let mut primaries = self.nodes.iter().filter_map(|node| node.primary.as_ref());
        if primaries.any(|primary| primary.term() == term) {
            self.break_with(Broken::TwoPrimaries(term.0));
        }
        true
    }

    pub(super) fn for_master(&mut self, at: Place, event: master::Event) {
        let now = self.nodes[at].clock(self.now_us);
        let mut actions = Vec::new();
        self.nodes[at].master.on(now, event, &mut actions);
        for action in actions {
            match action {
                master::Action::Ask(_, ticket, ask) => self.ask(at, Asker::Master, ticket, ask),
                master::Action::Seal { to, term, .. } => {
                    self.send_to(at, to, Message::Seal(term));
                }
                master::Action::Hint { to, config, .. } => {
                    self.send_to(at, to, Message::Hint(config));
                }
                master::Action::Probe { of, .. } => {
                    self.send(at, of.server, None, Message::Probe(of));
                }
                master::Action::HandOver { to, term, .. } => {
                    self.send_to(at, to, Message::HandOver(term));
                }
                master::Action::RefusePromotion(_) => self.count("promotion refused"),
                master::Action::RefuseLoss(_) => self.count("loss refused"),
                master::Action::StandDown => {
                    self.count("master deposed");
                    self.nodes[at].is_leader = false;
                    self.nodes[at].candidate = None;
                }
            }
        }
    }

    pub(super) fn on_tick(&mut self, at: Place, start: u8) {
        self.after(20_000, Happening::Ticks(at, start));
        self.for_replica(at, replica::Event::Tick);
        self.for_primary(at, None, kreon_replica::machine::primary::Event::Tick);
        self.for_master(at, master::Event::Tick);
        if self.now_us - self.nodes[at].flushed_us > 100_000 {
            self.nodes[at].flushed_us = self.now_us;
            if let State::InSync(stream) = self.nodes[at].replica.state()
                && self.nodes[at].replica.stream().is_some()
            {
                let stream = *stream;
                self.nodes[at].volume.flush();
                self.progress(at, stream.primary, stream.term);
            }
            self.tell_master(at);
        }
    }

    /// A primary tells the masters that it serves.
    fn tell_master(&mut self, at: Place) {
        let Some(term) = self.nodes[at].primary.as_ref().map(Primary::term) else {
            return;
        };
        let leaders: Vec<Member> = self
            .nodes
            .iter()
            .filter(|node| node.is_leader)
            .map(|node| node.me())
            .collect();
        for leader in leaders {
            debug_assert!(place_of(leader.server) < self.nodes.len());
            self.send_to(at, leader, Message::Serves(term));
        }
    }
}
