//! The replica of a group on one server: which terms still count, and what the file here is.
//!
//! `Absent -> Joining -> InSync -> Sealed(t) -> {Equalising -> Opening -> Serving} | InSync(t)`; any `-> Stale -> Joining`.
//! Nobody takes office by message, but by its *own* synced read that shows this start of this server and the term.

mod candidate;
mod event;
mod follow;
mod learn;
mod office;
mod seal;

pub use candidate::{Candidacy, Mate};
pub use event::{Action, Event};

use super::{Ask, Member, Moment, Report, ServerId, Stamp, Term, Ticket, Timing};

/// What a replica is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// There is no file that could count.
    Absent,
    /// The file may be older than what was acknowledged.
    Stale,
    /// Everything is being copied from the primary; what is here has no superblock.
    Joining(Stream),
    /// The file follows a primary.
    InSync(Stream),
    /// Lower terms are refused; what was received is being written, the end not known yet.
    Sealing {
        /// The term of the seal.
        term: Term,
        /// Who waits for the report.
        askers: Vec<ServerId>,
    },
    /// Lower terms are refused, and this is what is here.
    Sealed {
        /// The term of the seal.
        term: Term,
        /// What is durable here.
        report: Report,
    },
    /// The state of a candidate is being taken over.
    Repairing(Stream),
    /// In office by an own read; the other members are brought to the same state.
    Equalising(Candidacy),
    /// They are; the engine opens.
    Opening(Candidacy),
    /// The machine of the primary runs.
    Serving(Term),
}

/// A stream that counts: from whom, in which term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stream {
    /// The term.
    pub term: Term,
    /// Its primary, or candidate.
    pub primary: Member,
}

/// The machine of a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    me: Member,
    timing: Timing,
    state: State,
    /// Nothing of lower terms counts.
    promised: Term,
    /// The latest configuration that was seen, persisted.
    seen: Stamp,
    /// When it was seen: what was asked before may be answered later.
    seen_at: Moment,
    /// The coordinator, in this term, knows less than was seen here: this replica takes no part in promotions.
    estranged_by: Option<Term>,
    /// Where packets and beats may come from.
    stream: Option<Stream>,
    tickets: Ticket,
    /// The read under way, and when it was sent.
    asked: Option<(Ticket, Moment)>,
    /// Something happened since it was sent, which its answer may not show.
    again: bool,
    /// When the configuration was last read because this replica waits for a primary.
    looked_at: Option<Moment>,
    /// The primary that the last read named, if this replica is to join there, and when it was last asked.
    joins_at: Option<(Stream, Moment)>,
}

impl Replica {
    /// A start: with a `file` that has a superblock, or without. `promised` and `seen` are what was persisted. The
    /// first event is to be [`Event::Look`].
    pub fn new(me: Member, file: bool, promised: Term, seen: Stamp, timing: Timing) -> Self {
        let state = match file {
            true => State::Stale,
            false => State::Absent,
        };
        Self {
            me,
            timing,
            state,
            promised,
            seen,
            seen_at: Moment::default(),
            estranged_by: None,
            stream: None,
            tickets: Ticket::default(),
            asked: None,
            again: false,
            looked_at: None,
            joins_at: None,
        }
    }

    /// Takes note of `event` at `now`; what is to be done is appended to `out`.
    pub fn on(&mut self, now: Moment, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Look => self.look(now, out),
            Event::Hint(config) => self.on_hint(now, config, out),
            Event::Answer(ticket, answer) => self.on_answer(now, ticket, answer, out),
            Event::Seal { from, term } => self.on_seal(now, from, term, out),
            Event::Ended { term, report } => self.on_ended(now, term, report, out),
            Event::Sealed { from, term, report } => {
                self.on_sealed(now, (from, term), report, out);
            }
            Event::Equalise {
                from,
                term,
                top,
                log_end,
            } => self.on_equalise(
                Stream {
                    term,
                    primary: from,
                },
                top,
                log_end,
                out,
            ),
            Event::Repaired(term) => self.on_repaired(now, term, out),
            Event::Equal { from, term } => self.on_equal(now, from, term, out),
            Event::Failed(member) => self.on_failed(now, member, out),
            Event::Refused(term) if term > self.promised => self.look(now, out),
            Event::Refused(_) => {}
            Event::Opened(term) => self.on_opened(now, term, out),
            Event::Attached { from, term } => self.on_attached(from, term),
            Event::Completed(term) => self.on_completed(term),
            Event::StreamClosed => self.on_stream_closed(now, out),
            Event::Deposed => self.on_deposed(now, out),
            Event::Beat { from, term, beat } => self.on_beat(from, term, beat, out),
            Event::Tick => self.on_tick(now, out),
        }
    }

    /// What it is.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The term below which nothing counts here.
    pub fn promised(&self) -> Term {
        self.promised
    }

    /// The latest configuration that it saw.
    pub fn seen(&self) -> Stamp {
        self.seen
    }

    /// Where packets and beats may come from.
    pub fn stream(&self) -> Option<Stream> {
        self.stream
    }

    /// Reads the configuration anew.
    fn look(&mut self, now: Moment, out: &mut Vec<Action>) {
        if self.asked.is_some() {
            self.again = true;
            return;
        }
        let ticket = self.tickets.draw();
        self.asked = Some((ticket, now));
        out.push(Action::Ask(ticket, Ask::Read { synced: true }));
    }

    /// Whatever comes in by a stream ends, and the file is none of the set.
    fn become_stale(&mut self, out: &mut Vec<Action>) {
        match self.state {
            State::Absent | State::Stale => return,
            State::Joining(_) => self.state = State::Absent,
            State::Opening(_) | State::Serving(_) => {
                out.push(Action::Abandon);
                self.state = State::Stale;
            }
            _ => self.state = State::Stale,
        }
        self.stream = None;
        out.push(Action::StopFollowing);
    }
}
