//! When it is time to lay values together without being asked, and how fast: pure functions of what is seen.

use std::time::{Duration, Instant};

use kreon_base::Lsn;

use super::walk::Place;
use crate::tuning::{
    IDLE_AGAIN_SHARE, IDLE_LOOK, IDLE_ROUND_BYTES, IDLE_ROUND_BYTES_BESIDE_READERS,
    IDLE_SHARE_BESIDE_READERS,
};

/// Fewer new bytes are no reason for a pass.
pub const PASS_BYTES_MIN: u64 = 4 << 20;

/// So many reads of others between two rounds show that somebody reads.
const READS_MIN: u64 = 2;

/// Since when nobody has written.
#[derive(Default)]
pub struct Quiet {
    tail: Lsn,
    since: Option<Instant>,
}

impl Quiet {
    /// Whether the log has ended at `tail` for so long.
    pub fn lasts(&mut self, tail: Lsn, now: Instant, long: Duration) -> bool {
        if self.tail != tail || self.since.is_none() {
            (self.tail, self.since) = (tail, Some(now));
        }
        self.since
            .is_some_and(|since| now.saturating_duration_since(since) >= long)
    }
}

/// The walk over all keys.
#[derive(Default)]
pub struct Pass {
    /// Where it goes on; none: no pass is under way.
    next: Option<Place>,
    /// What users had given when the last one began.
    begun_at: u64,
    /// What users gave before the store was opened and is where it was written.
    given_before: u64,
    /// Passes that came to their end.
    pub ended: u64,
}

impl Pass {
    /// None was made yet, and so many bytes stand where an earlier run wrote them.
    pub fn new(given_before: u64) -> Self {
        Self {
            given_before,
            ..Self::default()
        }
    }

    /// Where the pass that is under way goes on.
    pub fn place(&self) -> Option<&Place> {
        self.next.as_ref()
    }

    /// Whether none is under way and [`enough`] was given since the last one began.
    pub fn is_due(&self, given: u64, enough: u64) -> bool {
        let new = self.given_before + given.saturating_sub(self.begun_at);
        self.next.is_none() && new > 0 && new >= enough
    }

    /// One begins.
    pub fn begin(&mut self, given: u64) {
        (self.begun_at, self.given_before) = (given, 0);
        self.next = Some(Place::first());
    }

    /// It goes on at `next`, or has come to its end.
    pub fn go_on(&mut self, next: Option<Place>) {
        self.ended += u64::from(next.is_none());
        self.next = next;
    }

    /// It cannot go on: the next one begins when there is something new.
    pub fn give_up(&mut self) {
        self.next = None;
    }
}

/// So many new bytes are a reason to go over all keys of a store with so many live bytes, or to spill what is new.
pub fn enough(live: u64, least: u64) -> u64 {
    (live / IDLE_AGAIN_SHARE).max(least)
}

/// How fast rounds follow each other.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// No round before this.
    pub next_at: Instant,
    /// Reads at the device when the last round ended.
    reads: u64,
    /// Others read.
    is_beside_readers: bool,
}

impl Pace {
    /// A round may begin.
    pub fn new(now: Instant) -> Self {
        Self {
            next_at: now,
            reads: 0,
            is_beside_readers: false,
        }
    }

    /// A round begins after so many reads at the device; the most bytes that it may move.
    pub fn round(&mut self, reads: u64) -> u64 {
        self.is_beside_readers = reads.saturating_sub(self.reads) >= READS_MIN;
        match self.is_beside_readers {
            true => IDLE_ROUND_BYTES_BESIDE_READERS,
            false => IDLE_ROUND_BYTES,
        }
    }

    /// It has ended, after so many reads at the device.
    pub fn ended(&mut self, begun: Instant, now: Instant, reads: u64) {
        let took = now.saturating_duration_since(begun);
        let pause = match self.is_beside_readers {
            true => took.mul_f64(1.0 / IDLE_SHARE_BESIDE_READERS - 1.0),
            false => Duration::ZERO,
        };
        self.next_at = now + pause.max(IDLE_LOOK);
        self.reads = reads;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn idle_time_begins_a_while_after_the_last_write() {
        let (mut quiet, begun) = (Quiet::default(), Instant::now());
        let mut lasts = |tail, after: u32| quiet.lasts(Lsn(tail), begun + after * MS, 300 * MS);
        assert!(!lasts(7, 0));
        assert!(!lasts(7, 299));
        assert!(lasts(7, 300) && lasts(7, 900));
        assert!(!lasts(8, 901), "somebody wrote");
        assert!(!lasts(8, 1200) && lasts(8, 1201));
    }

    #[test]
    fn a_pass_begins_when_enough_was_given_and_goes_on_where_it_stopped() {
        let mut pass = Pass::new(0);
        let enough_bytes = enough(1600 * MIB, PASS_BYTES_MIN);
        assert!(!pass.is_due(99 * MIB, enough_bytes));
        assert!(pass.is_due(100 * MIB, enough_bytes));
        pass.begin(100 * MIB);
        assert_eq!(pass.place(), Some(&Place::first()));
        let place = Place {
            region: kreon_base::RegionId(3),
            from: std::ops::Bound::Excluded(b"k".to_vec()),
        };
        pass.go_on(Some(place.clone()));
        assert!(!pass.is_due(900 * MIB, enough_bytes), "one is under way");
        assert_eq!(pass.place(), Some(&place));
        pass.go_on(None);
        assert_eq!((pass.place(), pass.ended), (None, 1));
        // What was given beside it may be behind the place that it had reached.
        assert!(!pass.is_due(199 * MIB, enough_bytes) && pass.is_due(200 * MIB, enough_bytes));
    }

    #[test]
    fn what_an_earlier_run_left_counts_once() {
        let mut pass = Pass::new(100 * MIB);
        let enough_bytes = enough(1600 * MIB, PASS_BYTES_MIN);
        assert!(pass.is_due(0, enough_bytes));
        pass.begin(0);
        pass.give_up();
        assert!(!pass.is_due(0, enough_bytes) && pass.is_due(100 * MIB, enough_bytes));
        assert_eq!(pass.ended, 0);
    }

    #[test]
    fn few_bytes_are_no_reason_for_a_pass() {
        let enough_bytes = enough(2 * MIB, PASS_BYTES_MIN);
        assert!(!Pass::new(MIB).is_due(0, enough_bytes));
        assert!(!Pass::new(0).is_due(0, 0), "nothing is none");
    }

    #[test]
    fn rounds_follow_at_once_unless_others_read() {
        let begun = Instant::now();
        let mut pace = Pace::new(begun);
        assert_eq!(pace.round(0), IDLE_ROUND_BYTES);
        pace.ended(begun, begun + 70 * MS, 5000);
        assert_eq!(pace.next_at, begun + 72 * MS);
        assert_eq!(pace.round(5001), IDLE_ROUND_BYTES);
        assert_eq!(pace.round(5100), IDLE_ROUND_BYTES_BESIDE_READERS);
        pace.ended(begun, begun + 30 * MS, 5400);
        let pause = pace.next_at - (begun + 30 * MS);
        assert!((69 * MS..=71 * MS).contains(&pause), "{pause:?}");
    }
}
