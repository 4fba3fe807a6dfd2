//! How much space reorganisation may take, and how it comes back: the one place where that is decided.
//!
//! Copies take space until their old places are free. What scans read together was written in another order: so all
//! old segments die evenly, and hardly one is wholly dead before the last values are copied. To collect them in
//! between would copy what is left in each, several times as much as there is to gain, and much of it just before a
//! scan asks for the same. So the store may take more than its target for a while, as with the merge of a whole level:
//!
//! - The *excess* is what was copied, and never more than what the store takes above its target: what becomes free is paid
//!   back for good.
//! - With it the store takes `scan_space_amplification` at the most, and leaves the volume and its file system room.
//! - Collection leaves the excess alone, but for segments of which next to nothing is left.
//! - When next to nothing was copied for [`EXCESS_REST`], it is taken back over [`EXCESS_PAYBACK`]: collection does the
//!   rest then.
//! - At the limit a part of it is taken back at once: the emptiest segments make room for more copies.
//! - A pass of idle time *holds* it: collection waits for the end of the pass, after which the old segments are free as a
//!   whole. What collection copied before would be copied for nothing.

use std::time::{Duration, Instant};

use kreon_sync::Mutex;

use crate::tuning::{EXCESS_FEW_SHARE, EXCESS_PAYBACK, EXCESS_REST};

/// A pass that holds the excess says so again within this time, or it is held no longer.
const HOLD: Duration = Duration::from_secs(2);

/// The excess of reorganisation: what it is now, and when it is paid back.
#[derive(Default)]
pub struct Excess {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    bytes: u64,
    /// The same when enough to count was copied last.
    bytes_then: u64,
    copied_at: Option<Instant>,
    /// When anything was.
    last_at: Option<Instant>,
    /// Copies since then that were too few to count.
    few_bytes: u64,
    /// Copies of which no spill knows.
    unspilled_bytes: u64,
    held_until: Option<Instant>,
}

impl Excess {
    /// So many bytes were copied.
    pub fn copied(&self, bytes: u64, now: Instant) {
        let mut state = self.state.lock();
        state.bytes += bytes;
        state.unspilled_bytes += bytes;
        state.few_bytes += bytes;
        state.last_at = Some(now);
        if state.few_bytes >= state.bytes / EXCESS_FEW_SHARE {
            state.few_bytes = 0;
            state.bytes_then = state.bytes;
            state.copied_at = Some(now);
        }
    }

    /// The store takes `above` bytes more than its target: how much of that is excess still.
    pub fn left(&self, above: u64, now: Instant) -> u64 {
        let mut state = self.state.lock();
        let rested = since(state.copied_at, now).saturating_sub(EXCESS_REST);
        let left = 1.0 - rested.as_secs_f64() / EXCESS_PAYBACK.as_secs_f64();
        let left = (state.bytes_then as f64 * left.max(0.0)) as u64;
        state.bytes = state.bytes.min(above).min(left);
        state.bytes
    }

    /// The same, and no more than `most`.
    pub fn take_back(&self, most: u64) {
        let mut state = self.state.lock();
        state.bytes = state.bytes.min(most);
    }

    /// A pass over all keys is under way, or no longer.
    pub fn hold(&self, is_held: bool, now: Instant) {
        self.state.lock().held_until = is_held.then(|| now + HOLD);
    }

    /// Whether a pass is under way.
    pub fn is_held(&self, now: Instant) -> bool {
        let held_until = self.state.lock().held_until;
        held_until.is_some_and(|until| now < until)
    }

    /// Whether copies wait for a spill and no others come; counts them as spilled.
    pub fn wants_spill(&self, is_full: bool, now: Instant) -> bool {
        let mut state = self.state.lock();
        let is_due = is_full || since(state.last_at, now) >= EXCESS_REST;
        is_due && std::mem::take(&mut state.unspilled_bytes) > 0
    }
}

/// How long ago it was, if ever.
fn since(then: Option<Instant>, now: Instant) -> Duration {
    then.map_or(Duration::MAX, |then| now.saturating_duration_since(then))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn what_became_free_is_paid_back_for_good() {
        let (excess, now) = (Excess::default(), Instant::now());
        excess.copied(100 * MIB, now);
        assert_eq!(excess.left(120 * MIB, now), 100 * MIB);
        assert_eq!(excess.left(30 * MIB, now), 30 * MIB);
        assert_eq!(excess.left(120 * MIB, now), 30 * MIB);
        excess.take_back(20 * MIB);
        assert_eq!(excess.left(120 * MIB, now), 20 * MIB);
    }

    #[test]
    fn it_lasts_as_long_as_copies_come_and_a_while_longer() {
        let (excess, now) = (Excess::default(), Instant::now());
        let left = |after| excess.left(u64::MAX, now + after);
        assert_eq!(left(Duration::ZERO), 0);
        excess.copied(100 * MIB, now);
        assert_eq!(left(EXCESS_REST), 100 * MIB);
        let half = left(EXCESS_REST + EXCESS_PAYBACK / 2);
        assert!((49 * MIB..=51 * MIB).contains(&half), "{half}");
        assert_eq!(left(EXCESS_REST + EXCESS_PAYBACK), 0);
        assert_eq!(left(Duration::ZERO), 0, "it does not come back");
    }

    #[test]
    fn copies_are_spilled_once_no_more_come_or_there_is_no_room() {
        let (excess, now) = (Excess::default(), Instant::now());
        assert!(!excess.wants_spill(true, now));
        excess.copied(MIB, now);
        assert!(!excess.wants_spill(false, now));
        assert!(excess.wants_spill(true, now));
        assert!(!excess.wants_spill(false, now + EXCESS_REST));
        excess.copied(MIB, now);
        assert!(excess.wants_spill(false, now + EXCESS_REST));
    }

    #[test]
    fn a_few_copies_now_and_then_do_not_keep_it() {
        let (excess, now) = (Excess::default(), Instant::now());
        excess.copied(100 * MIB, now);
        let seconds = Duration::from_secs;
        for second in 0..(EXCESS_REST + EXCESS_PAYBACK).as_secs() {
            excess.copied(MIB / 100, now + seconds(second));
        }
        assert!(excess.left(u64::MAX, now + EXCESS_REST + EXCESS_PAYBACK) < MIB);
        for second in 0..60 {
            excess.copied(MIB, now + EXCESS_REST + EXCESS_PAYBACK + seconds(second));
        }
        let last = now + EXCESS_REST + EXCESS_PAYBACK + seconds(60);
        assert!(excess.left(u64::MAX, last) >= 60 * MIB);
    }
}
