//! When a read may be shown: never before all counted members have what it shows, and only after they confirmed,
//! later than the value was taken, that this primary is in office.

use kreon_base::{Lsn, planted};

use super::{Action, Met, Phase, Primary, ReadId};
use crate::machine::{BeatNumber, Member, Moment};

/// A read that took its value and is not shown yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) read: ReadId,
    /// The log must have landed up to this.
    after: Lsn,
    /// This beat or a later one must have been answered.
    beat: BeatNumber,
}

impl Met {
    /// Up to where the log must have landed before the value is shown.
    fn awaited(&self) -> Lsn {
        planted!(DirtyRead => return Lsn(0));
        if self.start < self.unlanded_from {
            return Lsn(0);
        }
        // The end of the record is not enough: replay takes whole units, and the record may be one of many.
        let end = self.tail;
        planted!(BatchByFirstRecord => let end = self.end);
        end
    }
}

impl Primary {
    pub(super) fn on_read(
        &mut self,
        now: Moment,
        read: ReadId,
        met: Option<Met>,
        out: &mut Vec<Action>,
    ) {
        let beat = self.beat.next();
        planted!(BeatBeforeValue => let beat = self.beat);
        let after = met.map_or(Lsn(0), |met| met.awaited());
        self.reads.push(Waiting { read, after, beat });
        self.beat_for_reads(now, out);
        self.show_reads(now, out);
    }

    pub(super) fn on_beaten(
        &mut self,
        now: Moment,
        from: Member,
        beat: BeatNumber,
        out: &mut Vec<Action>,
    ) {
        let sent = self.beat;
        let Some(peer) = self.peer(from) else { return };
        peer.answered = peer.answered.max(beat.min(sent));
        peer.answered_at = now;
        self.beat_for_reads(now, out);
        self.show_reads(now, out);
    }

    /// One round trip for all reads that wait: the next beat goes when the last one is answered.
    pub(super) fn beat_for_reads(&mut self, now: Moment, out: &mut Vec<Action>) {
        let wanted = self.reads.iter().any(|waiting| waiting.beat > self.beat);
        if wanted && self.confirmed() == self.beat {
            self.send_beat(now, out);
        }
    }

    pub(super) fn send_beat(&mut self, now: Moment, out: &mut Vec<Action>) {
        let last = self.beat;
        self.beat = last.next();
        self.beat_at = now;
        let beat = self.beat;
        for peer in &mut self.peers {
            if peer.answered == last {
                peer.answered_at = now; // nothing was outstanding
            }
            let to = peer.member;
            out.push(Action::Beat { to, beat });
        }
    }

    /// The last beat that all counted members answered.
    fn confirmed(&self) -> BeatNumber {
        let answered = self.counted().map(|peer| peer.answered);
        answered.fold(self.beat, BeatNumber::min)
    }

    pub(super) fn show_reads(&mut self, now: Moment, out: &mut Vec<Action>) {
        if self.reads.is_empty() || self.phase == Phase::Deposed || !self.may_answer(now) {
            return;
        }
        let nobody = self.counted().next().is_none();
        let (landed, confirmed) = (self.landed, self.confirmed());
        self.reads.retain(|waiting| {
            let shown = waiting.after <= landed && (nobody || waiting.beat <= confirmed);
            if shown {
                out.push(Action::Show(waiting.read));
            }
            !shown
        });
    }
}
