//! Units under way: batches that are in the log, but not wholly in L0 yet.
//!
//! Their versions are marked pending in L0; a get passes over them until the whole unit is there, so
//! nobody sees half of a batch. Snapshots need none of this: they are taken with the gate closed.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use kreon_base::Lsn;
use parking_lot::Mutex;

/// The units under way.
#[derive(Default)]
pub struct Units {
    under_way: Mutex<Vec<Unit>>,
    count: AtomicUsize,
    /// All units with positions below are wholly in L0.
    settled: AtomicU64,
}

struct Unit {
    ticket: u64,
    /// The log's tail before the unit was appended, then the position of its first record.
    start: Lsn,
    /// Position behind its last record; [`Lsn::MAX`] until it is known.
    end: Lsn,
}

/// A unit under way; ends when dropped.
pub struct UnderWay<'a> {
    units: &'a Units,
    ticket: u64,
    end: Lsn,
}

impl Units {
    /// Announces a unit before it is appended; `tail` is the log's tail.
    pub fn begin(&self, tail: impl FnOnce() -> Lsn) -> UnderWay<'_> {
        let mut under_way = self.under_way.lock();
        let ticket = under_way
            .iter()
            .map(|unit| unit.ticket + 1)
            .max()
            .unwrap_or(0);
        let start = tail();
        under_way.push(Unit {
            ticket,
            start,
            end: Lsn::MAX,
        });
        self.count.store(under_way.len(), Ordering::SeqCst);
        UnderWay {
            units: self,
            ticket,
            end: start,
        }
    }

    /// Whether a pending version at `lsn` belongs to a unit that is wholly in L0.
    pub fn is_settled(&self, lsn: Lsn) -> bool {
        lsn.0 < self.settled.load(Ordering::Acquire)
            || !self
                .under_way
                .lock()
                .iter()
                .any(|unit| unit.start <= lsn && lsn < unit.end)
    }

    /// Whether any unit is under way.
    pub fn any(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }
}

impl UnderWay<'_> {
    /// Tells where the unit stands: its first position and the one behind its last record. Before any
    /// of its entries is inserted in L0.
    pub fn appended(&mut self, start: Lsn, end: Lsn) {
        let mut under_way = self.units.under_way.lock();
        if let Some(unit) = under_way.iter_mut().find(|unit| unit.ticket == self.ticket) {
            (unit.start, unit.end) = (start, end);
        }
        self.end = end;
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut under_way = self.units.under_way.lock();
        under_way.retain(|unit| unit.ticket != self.ticket);
        let settled = under_way
            .iter()
            .map(|unit| unit.start)
            .min()
            .unwrap_or(self.end);
        self.units.settled.fetch_max(settled.0, Ordering::Release);
        self.units.count.store(under_way.len(), Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_settled_when_it_and_no_other_covers_the_position() {
        let units = Units::default();
        let mut first = units.begin(|| Lsn(10));
        let mut second = units.begin(|| Lsn(10));
        second.appended(Lsn(50), Lsn(60));
        first.appended(Lsn(20), Lsn(40));
        assert!(!units.is_settled(Lsn(20)) && !units.is_settled(Lsn(59)));
        assert!(units.is_settled(Lsn(45)));
        drop(second);
        assert!(units.is_settled(Lsn(55)) && !units.is_settled(Lsn(30)));
        drop(first);
        assert!(units.is_settled(Lsn(30)) && !units.any());
    }

    #[test]
    fn a_unit_that_is_not_appended_yet_holds_back_what_lies_behind_its_start() {
        let units = Units::default();
        let waiting = units.begin(|| Lsn(100));
        let mut quick = units.begin(|| Lsn(100));
        quick.appended(Lsn(100), Lsn(110));
        drop(quick);
        assert_eq!(units.settled.load(Ordering::SeqCst), 100);
        drop(waiting);
    }
}
