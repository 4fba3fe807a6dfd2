//! What the machine of a primary wants done.

use kreon_client::Reply;
use kreon_replica::machine::primary::{Action, Event, Primary, ReadId};
use kreon_replica::machine::{Member, Term, replica};

use super::event::{Asker, Happening, Message};
use super::judge::Broken;
use super::run::Walk;
use crate::toy::Place;

impl Walk {
    /// For the primary at `at`, if there is one, and of this term if one is named.
    pub(super) fn for_primary(&mut self, at: Place, term: Option<Term>, event: Event) {
        let now = self.nodes[at].clock(self.now_us);
        let Some(primary) = &mut self.nodes[at].primary else {
            return;
        };
        if term.is_some_and(|term| term != primary.term()) {
            return;
        }
        let mut actions = Vec::new();
        primary.on(now, event, &mut actions);
        for action in actions {
            self.do_for_primary(at, action);
        }
    }

    fn do_for_primary(&mut self, at: Place, action: Action) {
        let Some(term) = self.nodes[at].primary.as_ref().map(Primary::term) else {
            return;
        };
        let start = self.nodes[at].start;
        match action {
            Action::Flush(_) => {
                let end = self.nodes[at].volume.log.len();
                let us = 100 + self.flush_us(at, 4000);
                self.after(us, Happening::Flushed(at, start, term, end));
            }
            Action::Landed(_) => {}
            Action::DurableEverywhere(upto) => {
                self.nodes[at].durable_everywhere = upto.0 as usize;
                self.release(at);
            }
            Action::Acknowledge(_) => self.release(at),
            Action::Show(read) => self.show(at, read),
            Action::Drop(read) => self.drop_read(at, read),
            Action::TakeWrites(takes) => self.nodes[at].takes_writes = takes,
            Action::Beat { to, beat } => self.send_to(at, to, Message::Beat(term, beat)),
            Action::Attach(joiner) => {
                let log = self.nodes[at].volume.log.as_slice().into();
                self.send_to(at, joiner, Message::Attached(term, log));
            }
            Action::Complete(joiner) => {
                let peers = self.nodes[at].primary.iter().flat_map(Primary::peers);
                let mates = peers.map(|peer| peer.member).collect();
                self.begin_checkpoint(at, mates, Some(joiner));
            }
            Action::Close(member) => {
                self.count("stream closed");
                self.send_to(at, member, Message::Closed(term));
                self.forget(at, member);
            }
            Action::Ask(ticket, ask) => self.ask(at, Asker::Primary(term), ticket, ask),
            Action::Abandon => {
                self.count("primary deposed");
                self.dismiss(at);
                self.for_replica(at, replica::Event::Deposed);
            }
        }
    }

    /// The checkpoint that completes a joiner is on all members.
    pub(super) fn completed(&mut self, at: Place, term: Term, joiner: Member) {
        self.count("join completed");
        let end = self.nodes[at].volume.durable_end();
        self.for_primary(at, Some(term), Event::Durable(end));
        self.for_primary(at, Some(term), Event::Completed(joiner));
    }

    /// Replies to writes leave.
    fn release(&mut self, at: Place) {
        if self.ends_unaware(at) {
            return;
        }
        let node = &mut self.nodes[at];
        let Some(primary) = &node.primary else { return };
        let (term, upto) = (primary.term(), primary.acknowledged().0 as usize);
        let durable = node.durable_everywhere;
        let due = |w: &super::node::Writing| w.end <= upto && (!w.sync || w.end <= durable);
        let released: Vec<_> = node.writes.iter().copied().filter(due).collect();
        node.writes.retain(|writing| !due(writing));
        for writing in released {
            self.judge
                .promise(writing.write, writing.sync, term, self.now_us);
            self.count(if writing.sync {
                "acknowledged as durable"
            } else {
                "acknowledged"
            });
            self.reply(writing.request, Reply::Ok, None);
            if self.judge.is_lost(writing.write) {
                self.count("late answer of what was given up");
                continue;
            }
            let lacks = |node: &super::node::Node| {
                let later = node
                    .primary
                    .as_ref()
                    .is_some_and(|primary| primary.term() > term);
                later && !node.volume.has(writing.write)
            };
            if self.nodes.iter().any(lacks) {
                self.break_with(Broken::LateAcknowledgement(writing.write, term.0));
            }
        }
    }

    /// The reply of a read leaves.
    fn show(&mut self, at: Place, read: ReadId) {
        if self.ends_unaware(at) {
            return;
        }
        let node = &mut self.nodes[at];
        let Some(place) = node.reads.iter().position(|reading| reading.read == read) else {
            return;
        };
        let reading = node.reads.swap_remove(place);
        let term = node.primary.as_ref().map(Primary::term);
        let seen = &node.volume.log[..reading.saw];
        let unseen = self
            .judge
            .unseen(reading.request.key, seen, reading.begun_us);
        self.count("read shown");
        if let Some(write) = unseen {
            self.break_with(Broken::Stale(write));
        }
        if let Some(write) = reading.found {
            let term = term.unwrap_or(reading.request.term);
            self.judge.promise(write, false, term, self.now_us);
        }
        self.reply(reading.request, Reply::Ok, reading.found);
    }

    /// A read is not answered here.
    fn drop_read(&mut self, at: Place, read: ReadId) {
        let reads = &mut self.nodes[at].reads;
        if let Some(place) = reads.iter().position(|reading| reading.read == read) {
            let reading = reads.swap_remove(place);
            let knows = self.nodes[at].replica.promised();
            self.reply(reading.request, Reply::Moved(knows), None);
        }
    }
}
