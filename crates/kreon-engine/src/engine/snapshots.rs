//! The snapshots that are open: the positions whose versions must be kept.

use crate::sync::{AtomicU64, Ordering};
use std::collections::BTreeMap;

use crate::sync::Mutex;
use kreon_base::{Bug, Lsn};

use super::gate::Gate;

/// The open snapshots. A snapshot at S sees every write before S.
#[derive(Default)]
pub struct Snapshots {
    open: Mutex<BTreeMap<Lsn, usize>>,
    /// The highest open one; 0 if there is none. L0 keeps a replaced version that lies before it.
    newest: AtomicU64,
}

impl Snapshots {
    /// Opens a snapshot of this moment. `tail` reads the log's tail; it is called with the gate closed,
    /// unless nothing was written since the newest snapshot.
    pub fn open(&self, gate: &Gate, tail: impl Fn() -> Lsn) -> Lsn {
        if let Some(lsn) = self.share_newest(&tail) {
            return lsn;
        }
        let _closed = (!Bug::SnapshotWithoutGate.is_planted()).then(|| gate.close());
        let mut open = self.open.lock();
        let lsn = tail();
        *open.entry(lsn).or_insert(0) += 1;
        self.set_newest(&open);
        lsn
    }

    /// While nothing was written since the newest snapshot, another one is the same and needs no gate.
    ///
    /// That nothing was written is checked while the snapshot counts as open: a writer that comes after
    /// the check finds it (it moves the tail before it reads [`Self::newest`]).
    fn share_newest(&self, tail: &impl Fn() -> Lsn) -> Option<Lsn> {
        let mut open = self.open.lock();
        let (&lsn, count) = open.iter_mut().next_back()?;
        if tail() != lsn {
            return None;
        }
        *count += 1;
        Some(lsn)
    }

    /// Ends a snapshot.
    pub fn close(&self, lsn: Lsn) {
        let mut open = self.open.lock();
        if let Some(count) = open.get_mut(&lsn) {
            *count -= 1;
            if *count == 0 {
                open.remove(&lsn);
            }
        }
        self.set_newest(&open);
    }

    fn set_newest(&self, open: &BTreeMap<Lsn, usize>) {
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

    /// How many are open.
    pub fn count(&self) -> usize {
        self.open.lock().values().sum()
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
        assert_eq!((first, second), (Lsn(10), Lsn(10)));
        snapshots.close(first);
        assert_eq!(snapshots.newest(), Some(Lsn(10)));
        snapshots.close(second);
        assert_eq!(snapshots.newest(), None);
    }

    #[test]
    fn a_write_between_two_snapshots_parts_them() {
        let (gate, snapshots) = (Gate::default(), Snapshots::default());
        snapshots.open(&gate, || Lsn(10));
        snapshots.open(&gate, || Lsn(20));
        assert_eq!(snapshots.list(), [Lsn(10), Lsn(20)]);
        snapshots.close(Lsn(20));
        assert_eq!(snapshots.newest(), Some(Lsn(10)));
    }
}
