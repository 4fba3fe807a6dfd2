//! How far the log is where, and what may be said of it.

use kreon_base::Lsn;

use super::{Action, Phase, Primary};
use crate::machine::{Member, Moment};

impl Primary {
    pub(super) fn on_appended(&mut self, now: Moment, tail: Lsn, out: &mut Vec<Action>) {
        for peer in &mut self.peers {
            if peer.landed >= self.tail {
                peer.moved_at = now; // nothing was outstanding
            }
        }
        self.tail = self.tail.max(tail);
        self.flush_if_sole(out);
    }

    pub(super) fn on_durable(&mut self, now: Moment, upto: Lsn, out: &mut Vec<Action>) {
        self.durable = self.durable.max(upto);
        self.go_on_with_change(now, out);
        self.say(now, out);
    }

    pub(super) fn on_progress(
        &mut self,
        now: Moment,
        from: Member,
        landed: Lsn,
        durable: Lsn,
        out: &mut Vec<Action>,
    ) {
        let Some(peer) = self.peer(from) else { return };
        if landed > peer.landed || durable > peer.durable {
            peer.moved_at = now;
        }
        peer.landed = peer.landed.max(landed);
        peer.durable = peer.durable.max(durable);
        self.say(now, out);
    }

    /// A sole member's replies wait for its own flush, so that has to come without being asked for.
    pub(super) fn flush_if_sole(&self, out: &mut Vec<Action>) {
        if self.is_sole() && self.durable < self.tail {
            out.push(Action::Flush(self.tail));
        }
    }

    /// Says what has become true of the log, and lets replies go.
    pub(super) fn say(&mut self, now: Moment, out: &mut Vec<Action>) {
        if matches!(self.phase, Phase::Frozen | Phase::Deposed) {
            return;
        }
        let here = match self.is_sole() {
            true => self.durable,
            false => self.tail,
        };
        let landed = self.counted().map(|peer| peer.landed).fold(here, Lsn::min);
        if landed > self.landed {
            self.landed = landed;
            out.push(Action::Landed(landed));
        }
        let durable = self.counted().map(|peer| peer.durable);
        let durable = durable.fold(self.durable, Lsn::min).min(self.landed);
        if durable > self.durable_everywhere {
            self.durable_everywhere = durable;
            out.push(Action::DurableEverywhere(durable));
        }
        if self.phase == Phase::Serving && self.acknowledged < self.landed && self.may_answer(now) {
            self.acknowledged = self.landed;
            out.push(Action::Acknowledge(self.landed));
        }
        self.show_reads(now, out);
        self.hand_over(now, out);
    }

    /// Whether replies may leave, as far as time goes. Asked last, directly before they do.
    pub(super) fn may_answer(&self, now: Moment) -> bool {
        !self.may_be_sole() || self.lease.holds(now, &self.timing)
    }
}
