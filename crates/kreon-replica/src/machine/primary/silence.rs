//! Who is silent, and what becomes of it.

use super::{Action, Phase, Primary, Standing};
use crate::machine::{Member, Moment};

/// A joiner that is copied to may stand still for so many times [`Timing::silence_us`](crate::machine::Timing): it has to
/// clone and to empty a large file first, and to flush all that was copied at last.
pub const JOINER_SILENCES: u64 = 10;

impl Primary {
    pub(super) fn on_tick(&mut self, now: Moment, out: &mut Vec<Action>) {
        let paused = now.since_us(self.last_tick) >= self.timing.silence_us / 2;
        self.last_tick = now;
        if paused {
            // Answers may lie unread: this process, not its peers, was silent.
            self.peers.iter_mut().for_each(|peer| peer.forgive(now));
        }
        if now.since_us(self.beat_at) >= self.timing.beat_every_us {
            self.send_beat(now, out);
        }
        self.fail_silent(now, out);
        self.tick_change(now, out);
        self.look_if_sole(now, out);
        self.say(now, out);
        self.hand_over(now, out);
    }

    /// Something that a peer was sent is applied there.
    pub(super) fn on_moved(&mut self, now: Moment, from: Member) {
        if let Some(peer) = self.peer(from) {
            peer.moved_at = now;
        }
    }

    fn fail_silent(&mut self, now: Moment, out: &mut Vec<Action>) {
        let (beat, tail, silence_us) = (self.beat, self.tail, self.timing.silence_us);
        let silent = |peer: &&super::Peer| {
            // A joiner that still copies lags behind the log for as long as that takes. One that has all that was copied
            // may lag because what it lacks is read from the file here; but something has to move there.
            let awaited = match peer.standing {
                Standing::Copying => peer.landed,
                _ => tail,
            };
            // Nobody else looks whether a copy goes on, and another joiner waits for its end.
            let stands_still = peer.standing == Standing::Copying
                && now.since_us(peer.moved_at) >= JOINER_SILENCES * silence_us;
            let is_silent = peer.is_silent(beat, awaited, now, silence_us);
            !peer.is_failed && (is_silent || stands_still)
        };
        let silent: Vec<Member> = self.peers.iter().filter(silent).map(|p| p.member).collect();
        for member in silent {
            self.on_failed(now, member, out);
        }
    }

    pub(super) fn on_failed(&mut self, now: Moment, member: Member, out: &mut Vec<Action>) {
        let Some(peer) = self.peer(member) else {
            return;
        };
        peer.is_failed = true;
        if peer.standing < Standing::Adding {
            // Its addition was never sent: nobody can promote it.
            self.drop_peer(member, out);
            self.beat_for_reads(now, out);
            self.say(now, out);
        }
        self.go_on(now, out);
    }

    pub(super) fn drop_peer(&mut self, member: Member, out: &mut Vec<Action>) {
        self.peers.retain(|peer| peer.member != member);
        out.push(Action::Close(member));
    }

    pub(super) fn is_deposed(&self) -> bool {
        self.phase == Phase::Deposed
    }
}
