//! Units under way: batches that are in the log, but not wholly in L0 yet.
//!
//! Their versions are marked pending in L0; a get passes over them until the whole unit is there, so
//! nobody sees half of a batch. And a later write of one of their keys goes into L0 only after the
//! whole unit: seen sooner, it would be proof of a unit that is not there. Snapshots need none of this:
//! they are taken with the gate closed.

use std::cell::Cell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use kreon_base::{Lsn, RegionId};

use crate::sync::{AtomicU64, AtomicUsize, Mutex, Ordering};

use crate::log::Pause;

/// The units under way.
#[derive(Default)]
pub struct Units {
    under_way: Mutex<Vec<Unit>>,
    count: AtomicUsize,
    /// All units with positions below are wholly in L0.
    settled: AtomicU64,
    /// End of the last unit that has ended; changes under the lock of `under_way`.
    ended: AtomicU64,
}

struct Unit {
    ticket: u64,
    /// The log's tail before the unit was appended, then the position of its first record.
    start: Lsn,
    /// Position behind its last record. The same as `start` until it is known: none of its entries is
    /// in L0 before.
    end: Lsn,
    keys: Marks,
}

/// Keys of a unit, as sorted hashes: enough to tell two units apart that share no key.
#[derive(Clone)]
pub struct Marks(Arc<[u64]>);

/// The mark of one key.
pub fn mark(region: RegionId, key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (region, key).hash(&mut hasher);
    hasher.finish()
}

/// A unit under way; ends when dropped.
pub struct UnderWay<'a> {
    units: &'a Units,
    ticket: u64,
    end: Lsn,
}

impl Marks {
    /// Of these keys.
    pub fn of<'k>(keys: impl Iterator<Item = (RegionId, &'k [u8])>) -> Self {
        let mut marks: Vec<u64> = keys.map(|(region, key)| mark(region, key)).collect();
        marks.sort_unstable();
        Self(marks.into())
    }

    /// As they are given to [`Units::wait_for_earlier`].
    pub fn sorted(&self) -> &[u64] {
        &self.0
    }
}

impl Units {
    /// Announces a unit of these keys before it is appended; `tail` is the log's tail.
    pub fn begin(&self, keys: Marks, tail: impl FnOnce() -> Lsn) -> UnderWay<'_> {
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
            end: start,
            keys,
        });
        self.count.store(under_way.len(), Ordering::SeqCst);
        UnderWay {
            units: self,
            ticket,
            end: start,
        }
    }

    /// What a get may see that begins now.
    pub fn sight(&self) -> Sight<'_> {
        Sight {
            units: self,
            settled: Lsn(self.settled.load(Ordering::Acquire)),
            proved: Cell::new(None),
            hidden_from: Cell::new(Lsn::MAX),
            is_stale: Cell::new(false),
        }
    }

    /// Start of the unit under way that covers `lsn`.
    fn start_of_unsettled(&self, lsn: Lsn) -> Option<Lsn> {
        let under_way = self.under_way.lock();
        let mut covering = under_way
            .iter()
            .filter(|unit| unit.start <= lsn && lsn < unit.end);
        covering.next().map(|unit| unit.start)
    }

    /// Whether any unit is under way. Who has a position in the log learns of every unit before it: a
    /// reservation there sees what came before the reservations ahead of it.
    pub fn any(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// Waits until no unit with one of these keys and a position before `lsn` is under way. For one who
    /// has appended what stands at `lsn` and inserted nothing of it yet: all that it waits for has lower
    /// positions (or gets a higher one in a moment, and then it waits no more) and waits for none of it.
    /// `marks` are sorted.
    pub fn wait_for_earlier(&self, lsn: Lsn, marks: &[u64]) {
        let is_earlier = |unit: &Unit| unit.start < lsn && meet(unit.keys.sorted(), marks);
        let mut pause = Pause::default();
        while self.under_way.lock().iter().any(is_earlier) {
            pause.wait();
        }
    }
}

/// Whether two sorted lists share a mark.
fn meet(one: &[u64], other: &[u64]) -> bool {
    let (few, many) = match one.len() < other.len() {
        true => (one, other),
        false => (other, one),
    };
    few.iter().any(|mark| many.binary_search(mark).is_ok())
}

/// Which pending versions of one key a get may see. It goes through them from the newest to the oldest, while units
/// end beside it. A unit may have several versions of a key, of which only the newest was ever meant to be seen: so
/// the get decides once for a whole unit, and only a unit that was settled before it began to look is seen.
pub struct Sight<'a> {
    units: &'a Units,
    /// All units below were settled before the get looked.
    settled: Lsn,
    /// A version whose unit was settled before the get looked again.
    proved: Cell<Option<Lsn>>,
    /// Start of the oldest unit that the get found under way.
    hidden_from: Cell<Lsn>,
    /// The get met a unit that was settled while it looked: a newer version of it may have come meanwhile.
    is_stale: Cell<bool>,
}

impl Sight<'_> {
    /// Whether the pending version at `lsn` is to be seen. To be asked from the newest to the oldest, up to the first
    /// that is seen; then [`Self::is_stale`] tells whether that counts.
    pub fn sees(&self, lsn: Lsn) -> bool {
        if lsn < self.settled || self.proved.get() == Some(lsn) {
            return true;
        }
        if lsn >= self.hidden_from.get() {
            return false;
        }
        match self.units.start_of_unsettled(lsn) {
            Some(start) => {
                self.hidden_from.set(start);
                false
            }
            None => {
                self.proved.set(Some(lsn));
                self.is_stale.set(true);
                true
            }
        }
    }

    /// Whether the get must look again from the newest version on; forgets it.
    pub fn is_stale(&self) -> bool {
        let is_stale = self.is_stale.replace(false);
        if is_stale {
            self.hidden_from.set(Lsn::MAX);
        }
        is_stale
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
        // Units end in any order: with the last of them all that ended are settled.
        let ended = self.units.ended.fetch_max(self.end.0, Ordering::Relaxed);
        let settled = under_way
            .iter()
            .map(|unit| unit.start)
            .min()
            .unwrap_or(self.end.max(Lsn(ended)));
        self.units.settled.fetch_max(settled.0, Ordering::Release);
        self.units.count.store(under_way.len(), Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Marks of keys of one letter each.
    fn keys(letters: &str) -> Marks {
        Marks::of(letters.as_bytes().chunks(1).map(|key| (RegionId(1), key)))
    }

    #[test]
    fn a_write_waits_for_earlier_units_with_its_keys_and_for_no_other() {
        let units = Units::default();
        let mut unit = units.begin(keys("abc"), || Lsn(10));
        unit.appended(Lsn(20), Lsn(40));
        units.wait_for_earlier(Lsn(50), keys("dxyz").sorted());
        units.wait_for_earlier(Lsn(20), keys("b").sorted());
        let is_there = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                units.wait_for_earlier(Lsn(50), keys("zb").sorted());
                assert!(is_there.load(Ordering::SeqCst), "it did not wait");
            });
            std::thread::sleep(std::time::Duration::from_millis(20));
            is_there.store(true, Ordering::SeqCst);
            drop(unit);
        });
    }

    fn is_settled(units: &Units, lsn: Lsn) -> bool {
        units.start_of_unsettled(lsn).is_none()
    }

    #[test]
    fn units_that_end_in_any_order_are_settled_with_the_last() {
        let units = Units::default();
        let mut first = units.begin(keys("a"), || Lsn(10));
        let mut second = units.begin(keys("b"), || Lsn(10));
        first.appended(Lsn(10), Lsn(40));
        second.appended(Lsn(50), Lsn(60));
        drop(second);
        drop(first);
        // Without asking for a lock.
        assert_eq!(units.settled.load(Ordering::SeqCst), 60);
    }

    #[test]
    fn a_get_sees_nothing_of_a_unit_that_ends_while_it_looks() {
        let units = Units::default();
        let mut unit = units.begin(keys("a"), || Lsn(10));
        unit.appended(Lsn(20), Lsn(40));
        let sight = units.sight();
        assert!(!sight.sees(Lsn(35)));
        drop(unit);
        assert!(
            !sight.sees(Lsn(25)),
            "of the same unit, and replaced by the one before"
        );
        assert!(sight.sees(Lsn(15)) && !units.sight().is_stale());
    }

    #[test]
    fn a_get_looks_again_if_a_unit_was_settled_before_it_asked() {
        let units = Units::default();
        let mut unit = units.begin(keys("a"), || Lsn(10));
        unit.appended(Lsn(20), Lsn(40));
        let sight = units.sight();
        // A version of 35 may have come since the get took 25 for the newest.
        drop(unit);
        assert!(sight.sees(Lsn(25)) && sight.is_stale());
        assert!(sight.sees(Lsn(35)) && sight.is_stale());
        assert!(sight.sees(Lsn(35)) && !sight.is_stale());
    }

    #[test]
    fn a_unit_is_settled_when_it_and_no_other_covers_the_position() {
        let units = Units::default();
        let mut first = units.begin(keys("a"), || Lsn(10));
        let mut second = units.begin(keys("b"), || Lsn(10));
        second.appended(Lsn(50), Lsn(60));
        first.appended(Lsn(20), Lsn(40));
        assert!(!is_settled(&units, Lsn(20)) && !is_settled(&units, Lsn(59)));
        assert!(is_settled(&units, Lsn(45)));
        drop(second);
        assert!(is_settled(&units, Lsn(55)) && !is_settled(&units, Lsn(30)));
        drop(first);
        assert!(is_settled(&units, Lsn(30)) && !units.any());
    }

    #[test]
    fn a_unit_that_is_not_appended_yet_hides_no_other() {
        let units = Units::default();
        let waiting = units.begin(keys("a"), || Lsn(100));
        let mut quick = units.begin(keys("b"), || Lsn(100));
        quick.appended(Lsn(100), Lsn(110));
        drop(quick);
        assert_eq!(units.settled.load(Ordering::SeqCst), 100);
        // But not what is wholly in L0: that was acknowledged.
        assert!(is_settled(&units, Lsn(100)) && is_settled(&units, Lsn(109)));
        drop(waiting);
    }
}
