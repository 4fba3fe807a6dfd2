//! What comes in from a primary: packets, beats, the state of a candidate, a whole copy.

use kreon_base::{Lsn, planted};

use super::{Action, Replica, State, Stream};
use crate::machine::{BeatNumber, Member, Moment, SlotMark, Term};

impl Replica {
    /// Whether a packet of this stream counts. Asked for each packet, before it is acknowledged.
    pub fn admits(&self, from: Member, term: Term) -> bool {
        let known = self
            .stream
            .is_some_and(|s| s.primary == from && s.term == term);
        let refused = term < self.promised;
        planted!(LowerTermAccepted => let refused = false);
        known && !refused
    }

    pub(super) fn on_beat(
        &mut self,
        to: Member,
        term: Term,
        beat: BeatNumber,
        out: &mut Vec<Action>,
    ) {
        let answer = match self.admits(to, term) {
            true => Action::Beaten { to, term, beat },
            false => Action::Refuse {
                to: to.server,
                promised: self.promised,
            },
        };
        out.push(answer);
    }

    pub(super) fn on_equalise(
        &mut self,
        stream: Stream,
        top: SlotMark,
        log_end: Lsn,
        out: &mut Vec<Action>,
    ) {
        let (term, to) = (stream.term, stream.primary);
        match self.state {
            State::Sealed { term: sealed, .. } if sealed == term => {
                self.state = State::Repairing(stream);
                let slots = self.slots_to_write(top);
                out.push(Action::Repair {
                    from: Some(to),
                    term,
                    slots,
                    log_end,
                });
            }
            // Asked again, because the answer was lost.
            State::InSync(held) if held == stream => out.push(Action::Equal { to, term }),
            State::Repairing(held) if held == stream => {}
            _ => out.push(Action::Refuse {
                to: to.server,
                promised: self.promised,
            }),
        }
    }

    pub(super) fn on_repaired(&mut self, now: Moment, term: Term, out: &mut Vec<Action>) {
        match &mut self.state {
            State::Repairing(stream) if stream.term == term => {
                let stream = *stream;
                self.state = State::InSync(stream);
                self.stream = Some(stream);
                let to = stream.primary;
                out.push(Action::Equal { to, term });
            }
            State::Equalising(candidacy) if candidacy.term() == term => {
                candidacy.is_repaired = true;
                self.open_if_equal(now, out);
            }
            _ => {}
        }
    }

    pub(super) fn on_attached(&mut self, primary: Member, term: Term) {
        if term >= self.promised && matches!(self.state, State::Absent | State::Stale) {
            let stream = Stream { term, primary };
            self.state = State::Joining(stream);
            self.stream = Some(stream);
            self.promised = term;
        }
    }

    pub(super) fn on_completed(&mut self, term: Term) {
        if let State::Joining(stream) = self.state
            && stream.term == term
        {
            self.state = State::InSync(stream);
        }
    }

    pub(super) fn on_stream_closed(&mut self, now: Moment, out: &mut Vec<Action>) {
        match self.state {
            State::Joining(_) => self.become_stale(out),
            State::InSync(_) => self.stream = None,
            _ => {}
        }
        self.look(now, out);
    }

    pub(super) fn on_tick(&mut self, now: Moment, out: &mut Vec<Action>) {
        self.tick_candidacy(now, out);
        let is_outside = matches!(self.state, State::Absent | State::Stale);
        // It was removed, or its primary is gone.
        let is_cut_off = matches!(self.state, State::InSync(_)) && self.stream.is_none();
        let is_due = |at: Moment| now.since_us(at) >= self.timing.silence_us;
        if (is_outside || is_cut_off) && self.looked_at.is_none_or(is_due) {
            self.looked_at = Some(now);
            self.look(now, out);
        }
        if is_outside {
            self.ask_attach_again(now, out);
        }
    }

    /// A primary drops the question while it is a candidate, hands over, or copies to another joiner, and nothing tells when
    /// that is over. Writes may wait for this replica meanwhile; a letter costs less than a read of the coordinator.
    fn ask_attach_again(&mut self, now: Moment, out: &mut Vec<Action>) {
        if let Some((stream, asked)) = self.joins_at
            && now.since_us(asked) >= self.timing.beat_every_us
        {
            self.ask_attach(now, stream, out);
        }
    }
}
