//! Messages: sent, lost, delivered in order on each link.

use kreon_base::Lsn;
use kreon_replica::machine::replica::State;
use kreon_replica::machine::{Member, ServerId, SlotMark, Term, master, primary, replica};

use super::event::{Happening, Message};
use super::judge::Broken;
use super::run::Walk;
use crate::explore::GROUP;
use crate::toy::{Entry, Place, place_of, start};

impl Walk {
    /// Sends to a start of a server, or to whatever start there is.
    pub(super) fn send(&mut self, at: Place, to: ServerId, start: Option<u8>, message: Message) {
        let place = place_of(to);
        if self.cut[at][place] {
            return self.count("message lost on a cut link");
        }
        let slow = self.dice.below(60) == 0;
        let delay_us = 30 + self.dice.below(if slow { 300_000 } else { self.way_us });
        let link = &mut self.links[at][place][usize::from(message.is_control())];
        let due_us = (self.now_us + delay_us).max(*link + 1);
        *link = due_us;
        let from = self.nodes[at].me();
        self.after(
            due_us - self.now_us,
            Happening::Arrives {
                from,
                to,
                start,
                message,
            },
        );
    }

    pub(super) fn send_to(&mut self, at: Place, to: Member, message: Message) {
        self.send(at, to.server, Some(start(to)), message);
    }

    pub(super) fn arrive(&mut self, at: Place, from: Member, message: Message) {
        use replica::Event;
        match message {
            Message::Seal(term) => {
                let from = from.server;
                self.for_replica(at, Event::Seal { from, term });
            }
            Message::Equalise {
                term,
                top,
                end: log_end,
                log,
            } => {
                let state = self.nodes[at].replica.state();
                if matches!(state, State::Sealed { term: sealed, .. } if *sealed == term) {
                    self.nodes[at].package = Some(log.to_vec());
                }
                let equalise = Event::Equalise {
                    from,
                    term,
                    top,
                    log_end,
                };
                self.for_replica(at, equalise);
            }
            Message::Equal(term) => self.for_replica(at, Event::Equal { from, term }),
            Message::Hint(config) => self.for_replica(at, Event::Hint(config)),
            Message::Beat(term, beat) => self.for_replica(at, Event::Beat { from, term, beat }),
            Message::Attached(term, log) => self.on_attached(at, from, term, &log),
            Message::Log(term, index, entry) => self.on_log(at, from, term, index, entry),
            Message::Barrier(term, number, upto, slot) => {
                self.on_barrier(at, from, term, number, upto, slot);
            }
            Message::Passed(term, number) => self.on_passed(at, from, term, number),
            Message::Closed(term) => {
                let stream = self.nodes[at].replica.stream();
                if stream.is_some_and(|s| s.primary == from && s.term == term) {
                    self.for_replica(at, Event::StreamClosed);
                }
            }
            Message::Probe(of) if of == self.nodes[at].me() => {}
            Message::Probe(of) => self.send_to(at, from, Message::Ended(of)),
            told => self.arrive_at_leader(at, from, told),
        }
    }

    /// What goes to whoever is in office: a primary, candidate or master.
    fn arrive_at_leader(&mut self, at: Place, from: Member, message: Message) {
        use primary::Event;
        match message {
            Message::Sealed(term, report) => {
                let sealed = master::Event::Sealed {
                    group: GROUP,
                    from,
                    term,
                    report,
                };
                self.for_master(at, sealed);
                self.for_replica(at, replica::Event::Sealed { from, term, report });
            }
            Message::Refused(term) => {
                self.for_primary(at, None, Event::Refused(term));
                self.for_replica(at, replica::Event::Refused(term));
                self.for_master(at, master::Event::Refused(GROUP, term));
            }
            Message::Beaten(term, beat) => {
                self.for_primary(at, Some(term), Event::Beaten { from, beat });
            }
            Message::AskAttach => self.for_primary(at, None, Event::AttachAsked(from)),
            Message::Copied(landed) => {
                self.for_primary(at, None, Event::Copied { peer: from, landed });
            }
            Message::Progress(term, landed, durable) => {
                let progress = Event::Progress {
                    from,
                    landed,
                    durable,
                };
                self.for_primary(at, Some(term), progress);
            }
            Message::Serves(term) => self.for_master(at, master::Event::Serves(GROUP, term)),
            Message::HandOver(term) => {
                self.count("asked to hand over");
                self.for_primary(at, Some(term), Event::HandOver);
            }
            Message::Ended(member) => self.for_master(at, master::Event::Ended(GROUP, member)),
            _ => {}
        }
    }

    fn on_attached(&mut self, at: Place, from: Member, term: Term, log: &[Entry]) {
        self.for_replica(at, replica::Event::Attached { from, term });
        let node = &mut self.nodes[at];
        if matches!(node.replica.state(), State::Joining(s) if s.primary == from && s.term == term)
        {
            node.volume.slot = None;
            node.volume.log = log.to_vec();
            node.volume.durable = 0;
            let end = node.volume.end();
            self.count("copy");
            self.send_to(at, from, Message::Copied(end));
        }
    }

    fn on_log(&mut self, at: Place, from: Member, term: Term, index: usize, entry: Entry) {
        if !self.nodes[at].replica.admits(from, term) {
            let promised = self.nodes[at].replica.promised();
            return self.send_to(at, from, Message::Refused(promised));
        }
        let sender = &self.nodes[crate::toy::place(from)];
        let own = &self.nodes[at].volume;
        if index != own.log.len() {
            return; // something before it was lost
        }
        let same_office = sender.me() == from
            && sender
                .primary
                .as_ref()
                .is_some_and(|primary| primary.term() == term);
        if same_office && sender.volume.log[..index] != own.log[..] {
            return self.break_with(Broken::Diverged(at as u32 + 1));
        }
        self.nodes[at].volume.log.push(entry);
        self.progress(at, from, term);
    }

    pub(super) fn progress(&mut self, at: Place, to: Member, term: Term) {
        let volume = &self.nodes[at].volume;
        let progress = Message::Progress(term, volume.end(), volume.durable_end());
        self.send_to(at, to, progress);
    }

    fn on_barrier(
        &mut self,
        at: Place,
        from: Member,
        term: Term,
        number: u64,
        upto: usize,
        slot: Option<SlotMark>,
    ) {
        let node = &mut self.nodes[at];
        if !node.replica.admits(from, term) || node.volume.log.len() < upto {
            return;
        }
        node.volume.flush();
        if slot.is_some() {
            node.volume.slot = slot;
            self.for_replica(at, replica::Event::Completed(term));
        }
        self.progress(at, from, term);
        self.send_to(at, from, Message::Passed(term, number));
    }

    pub(super) fn on_ended(
        &mut self,
        at: Place,
        term: Term,
        report: kreon_replica::machine::Report,
    ) {
        self.for_replica(at, replica::Event::Ended { term, report });
    }

    pub(super) fn on_repaired(&mut self, at: Place, term: Term) {
        self.for_replica(at, replica::Event::Repaired(term));
    }

    pub(super) fn on_flushed(&mut self, at: Place, term: Term, end: usize) {
        let node = &mut self.nodes[at];
        if node
            .primary
            .as_ref()
            .is_some_and(|primary| primary.term() == term)
        {
            node.volume.durable = node.volume.durable.max(end);
            let upto = Lsn(node.volume.durable as u64);
            self.for_primary(at, Some(term), primary::Event::Durable(upto));
        }
    }
}
