//! Open snapshots: the LSNs whose versions must be kept.

use kreon_sync::{AtomicU64, Ordering};
use std::collections::VecDeque;
use std::sync::atomic::fence;

use kreon_base::{Lsn, Timestamp, planted};
use kreon_sync::Mutex;

use super::gate::Gate;
use crate::options::Clock;

/// The LSN of a snapshot, its time, and the number of the closing of the gate that made it.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Its LSN.
    pub at: Lsn,
    /// Values that end by then have ended for it.
    pub time: Timestamp,
    /// The number of the closing of the gate.
    pub closing: u64,
}

impl Default for Moment {
    fn default() -> Self {
        Self {
            at: Lsn(0),
            time: Timestamp::MIN,
            closing: 0,
        }
    }
}

/// The open snapshots. A snapshot at S sees every write before S.
#[derive(Default)]
pub struct Snapshots {
    open: Mutex<Open>,
    /// The highest open one; 0 if there is none. L0 keeps a replaced version that lies before it.
    newest: AtomicU64,
}

#[derive(Default)]
struct Open {
    /// Ascending positions with the snapshots there, and so ascending times: these are read with the lock held, and the
    /// clock does not go back. Most end soon after they began, so most changes are at the end.
    positions: VecDeque<Opened>,
    /// The last moment that was made with the gate closed.
    last: Option<Moment>,
}

/// The snapshots at one position.
struct Opened {
    /// The first of them.
    moment: Moment,
    count: usize,
}

impl Open {
    /// Counts a snapshot of `moment`, or of the one that was opened there before, at a time of its own.
    fn add(&mut self, moment: Moment) -> Moment {
        let place = self.place(moment.at);
        if let Some(opened) = self.positions.get_mut(place)
            && opened.moment.at == moment.at
        {
            opened.count += 1;
            return Moment {
                time: moment.time,
                ..opened.moment
            };
        }
        self.positions.insert(place, Opened { moment, count: 1 });
        moment
    }

    fn remove(&mut self, at: Lsn) {
        let place = self.place(at);
        let opened = self.positions.get_mut(place);
        let opened = opened.filter(|opened| opened.moment.at == at);
        debug_assert!(opened.is_some(), "a snapshot is closed once");
        if let Some(opened) = opened {
            debug_assert!(opened.count > 0);
            opened.count -= 1;
            if opened.count == 0 {
                self.positions.remove(place);
            }
        }
    }

    /// The first position from `at` on.
    fn place(&self, at: Lsn) -> usize {
        // The newest ones change most.
        match self.positions.back() {
            Some(last) if last.moment.at < at => self.positions.len(),
            Some(last) if last.moment.at == at => self.positions.len() - 1,
            _ => self
                .positions
                .partition_point(|opened| opened.moment.at < at),
        }
    }
}

impl Snapshots {
    /// Opens a snapshot of this moment. `tail` reads the log's tail; it is called with the gate closed,
    /// unless nothing was written since the last closing for a snapshot.
    pub fn open(&self, gate: &Gate, clock: &Clock, tail: impl Fn() -> Lsn) -> Moment {
        if let Some(moment) = self.open_same(gate, clock, &tail) {
            return moment;
        }
        planted!(SnapshotWithoutGate => return self.open_new(0, clock, tail));
        let closed = gate.close();
        self.open_new(closed.number(), clock, tail)
    }

    /// Opens a snapshot at the log's tail; `closing` is the number of the gate's closing under which this happens.
    fn open_new(&self, closing: u64, clock: &Clock, tail: impl Fn() -> Lsn) -> Moment {
        let mut open = self.open.lock();
        let (at, time) = (tail(), clock.now());
        let moment = Moment { at, time, closing };
        open.last = Some(moment);
        let moment = open.add(moment);
        self.set_newest(&open);
        moment
    }

    /// While nothing was written since the last snapshot that closed the gate, open or not, another one is the same and
    /// needs no gate: at that closing everything before its position was in L0, and nothing behind it is in the log yet.
    ///
    /// That nothing was written is checked while the snapshot counts as open: a writer that comes after
    /// the check finds it (it moves the tail before it reads [`Self::newest`]), and so does who closes the gate (it
    /// counts the closing before). A closing or a mark since then wants snapshots of a later closing.
    fn open_same(&self, gate: &Gate, clock: &Clock, tail: &impl Fn() -> Lsn) -> Option<Moment> {
        let mut open = self.open.lock();
        let last = open.last?;
        let is_same = || gate.is_last(last.closing) && tail() == last.at;
        if !is_same() {
            return None;
        }
        let time = clock.now();
        let moment = open.add(Moment { time, ..last });
        self.set_newest(&open);
        // The looks behind it come after the store before it, for all threads.
        fence(Ordering::SeqCst);
        if is_same() {
            return Some(moment);
        }
        open.remove(last.at);
        self.set_newest(&open);
        None
    }

    /// Ends a snapshot.
    pub fn close(&self, lsn: Lsn) {
        let mut open = self.open.lock();
        open.remove(lsn);
        self.set_newest(&open);
    }

    fn set_newest(&self, open: &Open) {
        let newest = open.positions.back().map_or(0, |opened| opened.moment.at.0);
        if self.newest.load(Ordering::Relaxed) != newest {
            self.newest.store(newest, Ordering::SeqCst);
        }
    }

    /// The highest open one.
    pub fn newest(&self) -> Option<Lsn> {
        let newest = self.newest.load(Ordering::SeqCst);
        (newest != 0).then_some(Lsn(newest))
    }

    /// All open ones, ascending.
    pub fn list(&self) -> Vec<Lsn> {
        let open = self.open.lock();
        open.positions
            .iter()
            .map(|opened| opened.moment.at)
            .collect()
    }

    /// The time of the oldest open one, or that of the clock: values that end by then have ended for all that are open, and
    /// for all that will be.
    pub fn horizon(&self, clock: &Clock) -> Timestamp {
        let open = self.open.lock();
        let oldest = open.positions.front();
        oldest.map_or_else(|| clock.now(), |opened| opened.moment.time)
    }

    /// Whether one is open from `from` on, before `to`.
    pub fn is_any_within(&self, from: Lsn, to: Lsn) -> bool {
        let open = self.open.lock();
        let first = open.positions.get(open.place(from));
        first.is_some_and(|opened| opened.moment.at < to)
    }

    /// How many are open.
    pub fn count(&self) -> usize {
        let open = self.open.lock();
        open.positions.iter().map(|opened| opened.count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts() -> (Gate, Snapshots, Clock) {
        Default::default()
    }

    #[test]
    fn equal_moments_share_a_position_until_both_are_closed() {
        let (gate, snapshots, clock) = parts();
        let first = snapshots.open(&gate, &clock, || Lsn(10));
        let second = snapshots.open(&gate, &clock, || Lsn(10));
        assert_eq!((first.at, second.at), (Lsn(10), Lsn(10)));
        assert_eq!(first.closing, second.closing);
        snapshots.close(first.at);
        assert_eq!(snapshots.newest(), Some(Lsn(10)));
        snapshots.close(second.at);
        assert_eq!(snapshots.newest(), None);
    }

    #[test]
    fn a_write_between_two_snapshots_parts_them() {
        let (gate, snapshots, clock) = parts();
        snapshots.open(&gate, &clock, || Lsn(10));
        snapshots.open(&gate, &clock, || Lsn(20));
        assert_eq!(snapshots.list(), [Lsn(10), Lsn(20)]);
        assert!(snapshots.is_any_within(Lsn(10), Lsn(20)));
        assert!(!snapshots.is_any_within(Lsn(11), Lsn(20)));
        snapshots.close(Lsn(20));
        assert_eq!(snapshots.newest(), Some(Lsn(10)));
    }

    #[test]
    fn without_a_write_or_a_closing_the_gate_stays_open_for_the_next_snapshot() {
        let (gate, snapshots, clock) = parts();
        let first = snapshots.open(&gate, &clock, || Lsn(10));
        snapshots.close(first.at);
        let _inside = gate.enter();
        // With a writer inside, a closing would wait for ever.
        let again = snapshots.open(&gate, &clock, || Lsn(10));
        assert_eq!((again.at, again.closing), (first.at, first.closing));
        assert_eq!(snapshots.newest(), Some(Lsn(10)));
        snapshots.close(again.at);
        assert_eq!(snapshots.newest(), None);
    }

    #[test]
    fn a_mark_wants_a_later_closing() {
        let (gate, snapshots, clock) = parts();
        let first = snapshots.open(&gate, &clock, || Lsn(10));
        snapshots.close(first.at);
        let mark = gate.mark();
        assert!(first.closing < mark);
        assert!(snapshots.open(&gate, &clock, || Lsn(10)).closing > mark);
    }

    #[test]
    fn a_write_that_comes_while_a_snapshot_is_opened_parts_it_from_the_last() {
        let (gate, snapshots, clock) = parts();
        let first = snapshots.open(&gate, &clock, || Lsn(10));
        snapshots.close(first.at);
        let looks = std::cell::Cell::new(0);
        let tail = || {
            looks.set(looks.get() + 1);
            Lsn(if looks.get() > 1 { 20 } else { 10 })
        };
        assert_eq!(snapshots.open(&gate, &clock, tail).at, Lsn(20));
        assert_eq!(snapshots.list(), [Lsn(20)]);
    }

    #[test]
    fn positions_are_closed_in_any_order() {
        let (gate, snapshots, clock) = parts();
        for at in [10, 20, 20, 30] {
            snapshots.open(&gate, &clock, || Lsn(at));
        }
        snapshots.close(Lsn(20));
        snapshots.close(Lsn(10));
        assert_eq!(snapshots.list(), [Lsn(20), Lsn(30)]);
        assert_eq!(snapshots.count(), 2);
        assert!(snapshots.is_any_within(Lsn(0), Lsn(21)));
        assert!(!snapshots.is_any_within(Lsn(21), Lsn(30)));
        snapshots.close(Lsn(30));
        assert_eq!(snapshots.newest(), Some(Lsn(20)));
    }

    #[test]
    fn the_horizon_is_the_time_of_the_oldest_snapshot() {
        let (gate, snapshots, _) = parts();
        let shown = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(5));
        let read = std::sync::Arc::clone(&shown);
        let order = std::sync::atomic::Ordering::Relaxed;
        let clock = Clock::of(move || Timestamp::of_ms(read.load(order)));
        let open = |at, ms| {
            shown.store(ms, order);
            snapshots.open(&gate, &clock, || Lsn(at))
        };
        let horizon = || snapshots.horizon(&clock).ms();
        assert_eq!(horizon(), 5);
        let (first, second) = (open(10, 6), open(10, 7));
        assert_eq!((first.time.ms(), second.time.ms()), (6, 7));
        let third = open(20, 8);
        assert_eq!(horizon(), 6);
        // Of equal positions the first time counts until both are closed.
        snapshots.close(first.at);
        assert_eq!(horizon(), 6);
        snapshots.close(second.at);
        assert_eq!(horizon(), third.time.ms());
        snapshots.close(third.at);
        shown.store(9, order);
        assert_eq!(horizon(), 9);
    }
}
