//! The primary of a group in one term: what may be acknowledged, who counts, and who leaves or joins the set.
//!
//! *Counted* are the members in the coordinator's set or possibly in it. `Serving` acknowledges; `Frozen` waits for the
//! outcome of a change that removes members; `Short` has fewer members than writes need; `Deposed` is the end.
//!
//! A primary that is the only one in the coordinator's set acknowledges only what is durable here, and only within its
//! lease. That holds while a joiner is counted but not yet known to be added, too: until then a restart of this server
//! alone decides what survives.

mod change;
mod event;
mod join;
mod lease;
mod peer;
mod positions;
mod reads;
mod silence;

pub use event::{Action, Event, Met, ReadId};
pub use peer::{Peer, Standing};
pub use silence::JOINER_SILENCES;

use change::Change;
use kreon_base::Lsn;
use reads::Waiting;

use super::{BeatNumber, Configuration, Known, Member, Moment, ServerId, Term, Ticket, Timing};

/// What a primary does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Acknowledges and answers reads.
    Serving,
    /// Members are being removed: nothing is acknowledged until the outcome is known.
    Frozen,
    /// Too few members: reads only.
    Short,
    /// Another one is in office, or nobody.
    Deposed,
}

/// The machine of a primary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Primary {
    me: Member,
    term: Term,
    timing: Timing,
    phase: Phase,
    known: Known,
    peers: Vec<Peer>,
    /// End of the committed log here.
    tail: Lsn,
    /// End of what is durable here.
    durable: Lsn,
    /// What [`Action::Landed`] last said.
    landed: Lsn,
    /// What [`Action::DurableEverywhere`] last said.
    durable_everywhere: Lsn,
    /// What [`Action::Acknowledge`] last said.
    acknowledged: Lsn,
    change: Option<Change>,
    tickets: Ticket,
    lease: lease::Lease,
    beat: BeatNumber,
    beat_at: Moment,
    last_tick: Moment,
    reads: Vec<Waiting>,
    /// The device here failed, or everything is handed over: the office is to be given up.
    is_resigning: bool,
    /// Since when no more writes are taken, because another member is to be promoted.
    handing_over: Option<Moment>,
    /// Servers that are to leave, and not to come back in this term before the configuration has ceased to name them.
    unwanted: Vec<ServerId>,
}

impl Primary {
    /// Takes office: all members of the set have the log up to `end`, durably. `since` is when the own, synced read of
    /// `known` was sent that shows this server and this start of it in office.
    pub fn new(
        me: Member,
        known: Known,
        end: Lsn,
        since: Moment,
        now: Moment,
        timing: Timing,
    ) -> Self {
        let others = known.config.in_sync.iter().filter(|m| **m != me);
        let phase = match known.config.in_sync.len() >= usize::from(known.config.min_in_sync) {
            true => Phase::Serving,
            false => Phase::Short,
        };
        Self {
            me,
            term: known.config.term,
            timing,
            phase,
            peers: others
                .map(|m| Peer::new(*m, Standing::Member, end, now))
                .collect(),
            known,
            tail: end,
            durable: end,
            landed: end,
            durable_everywhere: end,
            acknowledged: end,
            change: None,
            tickets: Ticket::default(),
            lease: lease::Lease::new(since),
            beat: BeatNumber(0),
            beat_at: now,
            last_tick: now,
            reads: Vec::new(),
            is_resigning: false,
            handing_over: None,
            unwanted: Vec::new(),
        }
    }

    /// Takes note of `event` at `now`; what is to be done is appended to `out`.
    pub fn on(&mut self, now: Moment, event: Event, out: &mut Vec<Action>) {
        if self.phase == Phase::Deposed {
            if let Event::Read { read, .. } = event {
                out.push(Action::Drop(read));
            }
            return;
        }
        match event {
            Event::Appended(tail) => self.on_appended(now, tail, out),
            Event::Durable(upto) => self.on_durable(now, upto, out),
            Event::Progress {
                from,
                landed,
                durable,
            } => self.on_progress(now, from, landed, durable, out),
            Event::Moved(from) => self.on_moved(now, from),
            Event::Beaten { from, beat } => self.on_beaten(now, from, beat, out),
            Event::Refused(term) if term > self.term => self.look(now, out),
            Event::Refused(_) => {}
            Event::Failed(peer) => self.on_failed(now, peer, out),
            Event::AttachAsked(peer) => self.on_attach_asked(now, peer, out),
            Event::Copied { peer, landed } => self.on_copied(now, peer, landed, out),
            Event::Completed(peer) => self.on_completed(now, peer, out),
            Event::Read { read, met } => self.on_read(now, read, met, out),
            Event::Answer(ticket, answer) => self.on_answer(now, ticket, answer, out),
            Event::Look => self.look(now, out),
            Event::DeviceFailed => self.resign(now, out),
            Event::HandOver => self.on_hand_over(now, out),
            Event::Remove(server) => self.on_remove(now, server, out),
            Event::Tick => self.on_tick(now, out),
        }
    }

    /// What it does.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The term of its office.
    pub fn term(&self) -> Term {
        self.term
    }

    /// The configuration that it goes by.
    pub fn known(&self) -> &Known {
        &self.known
    }

    /// Backups and joiners.
    pub fn peers(&self) -> &[Peer] {
        &self.peers
    }

    /// Replies to writes that end up to here have left, or may.
    pub fn acknowledged(&self) -> Lsn {
        self.acknowledged
    }

    /// End of what all counted members hold.
    pub fn landed(&self) -> Lsn {
        self.landed
    }

    /// The swap that is under way, and waits for an answer to its question.
    pub fn swap(&self) -> Option<&super::Swap> {
        self.change.as_ref().and_then(Change::swap)
    }

    /// Where the change under way leads to, whether its swap was sent or waits for a flush.
    pub fn changes_to(&self) -> Option<&Configuration> {
        self.change.as_ref().map(Change::next)
    }

    /// Whether nobody else is in the coordinator's set, as far as known.
    pub fn is_sole(&self) -> bool {
        self.known.config.in_sync.len() == 1
    }

    /// Whether the coordinator may have nobody else in the set: a swap to that is under way.
    fn may_be_sole(&self) -> bool {
        let swapping = self.change.as_ref().and_then(Change::swap);
        self.is_sole() || swapping.is_some_and(|swap| swap.next.in_sync.len() == 1)
    }

    fn peer(&mut self, member: Member) -> Option<&mut Peer> {
        self.peers.iter_mut().find(|peer| peer.member == member)
    }

    fn counted(&self) -> impl Iterator<Item = &Peer> {
        self.peers.iter().filter(|peer| peer.standing.is_counted())
    }

    /// The office is over.
    fn depose(&mut self, out: &mut Vec<Action>) {
        self.phase = Phase::Deposed;
        self.change = None;
        self.peers.clear();
        let reads = self.reads.drain(..);
        out.extend(reads.map(|waiting| Action::Drop(waiting.read)));
        out.push(Action::Abandon);
    }
}
