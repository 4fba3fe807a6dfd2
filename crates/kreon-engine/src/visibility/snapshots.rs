//! Open snapshots: the LSNs whose versions must be kept.

use kreon_sync::{AtomicU64, Ordering};
use std::collections::BTreeMap;

use kreon_base::{Lsn, planted};
use kreon_sync::Mutex;

use super::gate::Gate;

/// The LSN of a snapshot, and the number of the closing of the gate that made it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moment {
    /// Its LSN.
    pub at: Lsn,
    /// The number of the closing of the gate.
    pub closing: u64,
}

/// The open snapshots. A snapshot at S sees every write before S.
#[derive(Default)]
pub struct Snapshots {
    open: Mutex<BTreeMap<Lsn, Opened>>,
    /// The highest open one; 0 if there is none. L0 keeps a replaced version that lies before it.
    newest: AtomicU64,
}

/// The snapshots at one position.
struct Opened {
    count: usize,
    /// Number of the closing of the gate at which the first of them was opened.
    closing: u64,
}

impl Snapshots {
    /// Opens a snapshot of this moment. `tail` reads the log's tail; it is called with the gate closed,
    /// unless nothing was written since the newest snapshot.
    pub fn open(&self, gate: &Gate, tail: impl Fn() -> Lsn) -> Moment {
        if let Some(moment) = self.share_newest(&tail) {
            return moment;
        }
        planted!(SnapshotWithoutGate => return self.open_new(0, tail));
        let closed = gate.close();
        self.open_new(closed.number(), tail)
    }

    /// Opens a snapshot at the log's tail; `closing` is the number of the gate's closing under which this happens.
    fn open_new(&self, closing: u64, tail: impl Fn() -> Lsn) -> Moment {
        let mut open = self.open.lock();
        let at = tail();
        let opened = open.entry(at).or_insert(Opened { count: 0, closing });
        opened.count += 1;
        let closing = opened.closing;
        self.set_newest(&open);
        Moment { at, closing }
    }

    /// While nothing was written since the newest snapshot, another one is the same and needs no gate.
    ///
    /// That nothing was written is checked while the snapshot counts as open: a writer that comes after
    /// the check finds it (it moves the tail before it reads [`Self::newest`]).
    fn share_newest(&self, tail: &impl Fn() -> Lsn) -> Option<Moment> {
        let mut open = self.open.lock();
        let (&at, opened) = open.iter_mut().next_back()?;
        if tail() != at {
            return None;
        }
        opened.count += 1;
        let closing = opened.closing;
        Some(Moment { at, closing })
    }

    /// Ends a snapshot.
    pub fn close(&self, lsn: Lsn) {
        let mut open = self.open.lock();
        debug_assert!(open.contains_key(&lsn), "a snapshot is closed once");
        if let Some(opened) = open.get_mut(&lsn) {
            debug_assert!(opened.count > 0);
            opened.count -= 1;
            if opened.count == 0 {
                open.remove(&lsn);
            }
        }
        self.set_newest(&open);
    }

    fn set_newest(&self, open: &BTreeMap<Lsn, Opened>) {
        let newest = open.keys().next_back().map_or(0, |lsn| lsn.0);
        self.newest.store(newest, Ordering::SeqCst);
    }

    /// The highest open one.
    pub fn newest(&self) -> Option<Lsn> {
        let newest = self.newest.load(Ordering::SeqCst);
        (newest != 0).then_some(Lsn(newest))
    }

    /// All open ones, ascending.
    pub fn list(&self) -> Vec<Lsn> {
        self.open.lock().keys().copied().collect()
    }

    /// Whether one is open from `from` on, before `to`.
    pub fn is_any_within(&self, from: Lsn, to: Lsn) -> bool {
        self.open.lock().range(from..to).next().is_some()
    }

    /// How many are open.
    pub fn count(&self) -> usize {
        self.open.lock().values().map(|opened| opened.count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_moments_share_a_position_until_both_are_closed() {
        let (gate, snapshots) = (Gate::default(), Snapshots::default());
        let first = snapshots.open(&gate, || Lsn(10));
        let second = snapshots.open(&gate, || Lsn(10));
        assert_eq!((first.at, second.at), (Lsn(10), Lsn(10)));
        assert_eq!(first.closing, second.closing);
        snapshots.close(first.at);
        assert_eq!(snapshots.newest(), Some(Lsn(10)));
        snapshots.close(second.at);
        assert_eq!(snapshots.newest(), None);
    }

    #[test]
    fn a_write_between_two_snapshots_parts_them() {
        let (gate, snapshots) = (Gate::default(), Snapshots::default());
        snapshots.open(&gate, || Lsn(10));
        snapshots.open(&gate, || Lsn(20));
        assert_eq!(snapshots.list(), [Lsn(10), Lsn(20)]);
        assert!(snapshots.is_any_within(Lsn(10), Lsn(20)));
        assert!(!snapshots.is_any_within(Lsn(11), Lsn(20)));
        snapshots.close(Lsn(20));
        assert_eq!(snapshots.newest(), Some(Lsn(10)));
    }
}
