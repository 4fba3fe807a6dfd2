//! Changes of the set: one at a time, by compare-and-set.
//!
//! Removing members: freeze, flush if nobody else is left, swap, learn the outcome, close the streams, thaw. Without the
//! freeze, a write acknowledged between flush and swap is in the memory of one server only.

use kreon_base::{Lsn, planted};

use super::{Action, Phase, Primary, Standing};
use crate::machine::{Answer, Configuration, Known, Moment, Outcome, Swap, Ticket, Version};

/// A change under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The log becomes durable here up to this, then the swap follows.
    Flushing { upto: Lsn, next: Configuration },
    /// The outcome is awaited.
    Swapping(Swap),
}

impl Change {
    pub(super) fn swap(&self) -> Option<&Swap> {
        match self {
            Self::Flushing { .. } => None,
            Self::Swapping(swap) => Some(swap),
        }
    }

    pub(super) fn next(&self) -> &Configuration {
        match self {
            Self::Flushing { next, .. } => next,
            Self::Swapping(swap) => &swap.next,
        }
    }
}

impl Primary {
    /// Begins what is due next, if nothing is under way: removing first, then adding, else acknowledging goes on.
    pub(super) fn go_on(&mut self, now: Moment, out: &mut Vec<Action>) {
        if self.change.is_some() || self.is_deposed() {
            return;
        }
        if self.is_resigning {
            return self.swap_to(now, self.resigned(), out);
        }
        let failed = |p: &&super::Peer| p.is_failed && p.standing == Standing::Member;
        if self.peers.iter().any(|peer| failed(&peer)) {
            let gone: Vec<_> = self.peers.iter().filter(failed).map(|p| p.member).collect();
            let next = self.known.config.without(|member| gone.contains(&member));
            return self.shrink(now, next, out);
        }
        let mut peers = self.peers.iter_mut();
        if let Some(peer) = peers.find(|peer| peer.standing == Standing::Complete) {
            peer.standing = Standing::Adding;
            let next = self.known.config.with(peer.member);
            self.swap_to(now, next, out);
        }
        self.thaw(now, out);
    }

    fn shrink(&mut self, now: Moment, next: Configuration, out: &mut Vec<Action>) {
        let phase = Phase::Frozen;
        planted!(NoFreeze => let phase = self.phase);
        self.phase = phase;
        let alone = next.in_sync.len() == 1;
        planted!(NoFlushBeforeAlone => let alone = false);
        let upto = self.landed;
        if alone && self.durable < upto {
            self.change = Some(Change::Flushing { upto, next });
            out.push(Action::Flush(upto));
        } else {
            self.swap_to(now, next, out);
        }
    }

    fn swap_to(&mut self, now: Moment, next: Configuration, out: &mut Vec<Action>) {
        let ticket = self.tickets.draw();
        let ask = &mut |ticket, ask| out.push(Action::Ask(ticket, ask));
        let base = (self.known.clone(), self.lease.is_fresh(now, &self.timing));
        let swap = Swap::begin(base, next, None, now, ticket, ask);
        self.change = Some(Change::Swapping(swap));
    }

    /// A flush may have been all that a change waited for.
    pub(super) fn go_on_with_change(&mut self, now: Moment, out: &mut Vec<Action>) {
        match self.change.take() {
            Some(Change::Flushing { upto, next }) if upto <= self.durable => {
                self.swap_to(now, next, out);
            }
            other => self.change = other,
        }
    }

    pub(super) fn tick_change(&mut self, now: Moment, out: &mut Vec<Action>) {
        if let Some(Change::Swapping(swap)) = &mut self.change {
            let mut tickets = self.tickets;
            let ticket = tickets.draw();
            swap.on_tick(now, ticket, &mut |ticket, ask| {
                out.push(Action::Ask(ticket, ask))
            });
            self.tickets = tickets;
        }
    }

    pub(super) fn on_change_answer(
        &mut self,
        now: Moment,
        ticket: Ticket,
        answer: Answer,
        out: &mut Vec<Action>,
    ) {
        let Some(Change::Swapping(swap)) = &mut self.change else {
            return;
        };
        if !swap.awaits(ticket) {
            return;
        }
        let next_ticket = self.tickets.draw();
        let outcome = swap.on_answer(now, answer, next_ticket, &mut |ticket, ask| {
            out.push(Action::Ask(ticket, ask));
        });
        match outcome {
            Outcome::Open => {}
            Outcome::Done { known, sent } => {
                self.change = None;
                self.lease.renew(sent);
                self.adopt(now, known, out);
            }
            Outcome::Overtaken(known) if self.is_of_restored(&known) => {
                if let Some(Change::Swapping(swap)) = &mut self.change {
                    swap.put_off(now);
                }
            }
            Outcome::Overtaken(known) => {
                self.change = None;
                planted!(LostReplyReadWithoutSync => self.give_up_adding());
                self.adopt(now, known, out);
            }
            Outcome::FenceLost => self.change = None, // its swaps have no fence
        }
    }

    /// Believes that joiners were not added (the planted bug).
    fn give_up_adding(&mut self) {
        let adding = |peer: &&mut super::Peer| peer.standing == Standing::Adding;
        let peers = self.peers.iter_mut().filter(adding);
        peers.for_each(|peer| peer.is_failed = true);
    }

    /// Goes by `known` from now on. It is later than what was known, or the outcome of a swap: in both cases a joiner that
    /// is not in it was not added and never will be by a swap that was sent before.
    pub(super) fn adopt(&mut self, now: Moment, known: Known, out: &mut Vec<Action>) {
        if known.config.term != self.term || !known.config.is_led_by(self.me) {
            return self.depose(out);
        }
        let config = known.config;
        planted!(RemovedMemberCounted => let config = self.with_removed(config));
        self.settle_peers(&config, out);
        let version = Version(known.version.0.max(self.known.version.0));
        self.known = Known { version, config };
        // Who is not named is kept out by that, and is wanted when it is named again.
        let named = &self.known.config.servers;
        self.unwanted.retain(|server| named.contains(server));
        self.fail_unwanted(now, out);
        self.go_on(now, out);
        self.hand_over(now, out);
    }

    /// Peers have the standing that `config` gives them.
    fn settle_peers(&mut self, config: &Configuration, out: &mut Vec<Action>) {
        let gone: Vec<_> = self.peers.iter_mut().fold(Vec::new(), |mut gone, peer| {
            match (config.has(peer.member), peer.standing) {
                (true, _) => peer.standing = Standing::Member,
                (false, Standing::Member) => gone.push(peer.member),
                (false, Standing::Adding) if peer.is_failed => gone.push(peer.member),
                (false, Standing::Adding) => peer.standing = Standing::Complete,
                (false, _) => {}
            }
            gone
        });
        for member in gone {
            self.drop_peer(member, out);
        }
    }

    /// The set as it was before members were removed (the planted bug).
    fn with_removed(&mut self, config: Configuration) -> Configuration {
        let before = self
            .peers
            .iter_mut()
            .filter(|p| p.standing == Standing::Member);
        before.fold(config, |config, peer| {
            peer.is_failed = false;
            config.with(peer.member)
        })
    }

    /// Acknowledging goes on, if there are enough members.
    fn thaw(&mut self, now: Moment, out: &mut Vec<Action>) {
        let enough = self.known.config.in_sync.len() >= usize::from(self.known.config.min_in_sync);
        let phase = match enough {
            true => Phase::Serving,
            false => Phase::Short,
        };
        if self.phase != phase {
            out.push(Action::TakeWrites(enough && self.handing_over.is_none()));
            self.phase = phase;
        }
        self.flush_if_sole(out);
        self.beat_for_reads(now, out);
        self.say(now, out);
    }

    /// Acknowledges nothing any more, and leaves office.
    pub(super) fn resign(&mut self, now: Moment, out: &mut Vec<Action>) {
        self.phase = Phase::Frozen;
        self.is_resigning = true;
        if matches!(self.change, Some(Change::Flushing { .. })) {
            self.change = None; // a device that hangs will not end that flush
        }
        self.go_on(now, out);
    }

    /// The next term, in which somebody else is promoted. This member stays in the set until then: without it another one
    /// could be alone with what nobody has flushed. As it cannot be sealed, the candidate removes it.
    fn resigned(&self) -> Configuration {
        self.known.config.in_next_term()
    }

    pub(super) fn on_hand_over(&mut self, now: Moment, out: &mut Vec<Action>) {
        if self.is_resigning || self.handing_over.is_some() || self.is_sole() {
            return;
        }
        self.handing_over = Some(now);
        out.push(Action::TakeWrites(false));
        if self.durable_everywhere < self.tail {
            out.push(Action::Flush(self.tail));
        }
        self.hand_over(now, out);
    }

    /// Leaves office when every write that was taken is answered, or has waited for long enough.
    pub(super) fn hand_over(&mut self, now: Moment, out: &mut Vec<Action>) {
        let Some(since) = self.handing_over else {
            return;
        };
        if self.is_resigning || self.is_deposed() {
            return;
        }
        if self.is_sole() && self.change.is_none() {
            // Nobody is left to whom anything could be handed.
            self.handing_over = None;
            let enough = self.phase == Phase::Serving;
            return out.push(Action::TakeWrites(enough));
        }
        let all = self.acknowledged >= self.tail && self.durable_everywhere >= self.tail;
        if all || now.since_us(since) >= self.timing.seal_patience_us {
            self.resign(now, out);
        }
    }
}
