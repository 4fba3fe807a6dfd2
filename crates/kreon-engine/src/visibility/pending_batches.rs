//! Pending batches: batches that are in the log, but not wholly in L0 yet.
//!
//! Their versions are marked pending in L0, and gets pass over them until the whole batch is there, so that no get sees
//! a part of a batch. A later write of one of their keys waits for the whole batch: it would be visible before older
//! writes otherwise. The deletion of a range is a batch of all keys, though its one entry is never pending. Snapshots
//! are taken with the gate closed, when no batch is pending.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use kreon_base::{KeyHash, Lsn, RegionId};

use kreon_sync::{AtomicU64, AtomicUsize, Mutex, Ordering};

use kreon_log::Pause;

/// The pending batches of a store.
#[derive(Default)]
pub struct PendingBatches {
    under_way: Mutex<Vec<Unit>>,
    count: AtomicUsize,
    /// All batches with positions below are wholly in L0.
    settled: AtomicU64,
    /// End of the last batch that has ended; changes under the lock of `under_way`.
    ended: AtomicU64,
}

struct Unit {
    ticket: u64,
    /// The log's tail before the batch was appended, then the position of its first record.
    start: Lsn,
    /// Position behind its last record. The same as `start` until it is known: none of its entries is
    /// in L0 before.
    end: Lsn,
    keys: KeySet,
}

/// Keys of a batch, as hashes. Two keys with one hash make a write wait without need.
pub struct KeySet {
    /// A hash table: a mark stands at the index of its low bits, or in the next place that was empty; 0 is
    /// empty. At least half of it is. A power of two long.
    places: Vec<u64>,
    /// Every key is marked, because a range of keys is deleted.
    has_all: bool,
}

/// The mark of one key, never 0. Seeded at random in each process, so that keys with one mark cannot be chosen.
pub fn mark(region: RegionId, key: &[u8]) -> u64 {
    static SEED: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0));
    let start = *SEED ^ (u64::from(region.0) << 32 | key.len() as u64);
    KeyHash::new(start).bytes(key).word(*SEED).finish().max(1)
}

/// A pending batch; ends when dropped.
pub struct UnderWay<'a> {
    batches: &'a PendingBatches,
    ticket: u64,
    end: Lsn,
}

impl KeySet {
    /// Of these keys.
    pub fn of<'k>(keys: impl ExactSizeIterator<Item = (RegionId, &'k [u8])>) -> Self {
        let length = (2 * keys.len()).next_power_of_two();
        let mut marks = Self {
            places: vec![0; length],
            has_all: false,
        };
        for (region, key) in keys {
            let mark = mark(region, key);
            let at = marks.place_of(mark);
            if let Some(place) = marks.places.get_mut(at) {
                *place = mark;
            }
        }
        marks
    }

    /// Of all keys there are.
    pub fn of_every_key() -> Self {
        Self {
            places: vec![0; 1],
            has_all: true,
        }
    }

    fn has(&self, mark: u64) -> bool {
        self.has_all || self.places.get(self.place_of(mark)) == Some(&mark)
    }

    /// Where `mark` is, or would be put.
    fn place_of(&self, mark: u64) -> usize {
        let last = self.places.len() - 1;
        let mut at = mark as usize & last;
        while self
            .places
            .get(at)
            .is_some_and(|&found| found != 0 && found != mark)
        {
            at = (at + 1) & last;
        }
        at
    }

    /// Whether some mark is in both.
    fn meet(&self, other: &Self) -> bool {
        if self.has_all || other.has_all {
            return true;
        }
        let (few, many) = match self.places.len() < other.places.len() {
            true => (self, other),
            false => (other, self),
        };
        few.places.iter().any(|&mark| mark != 0 && many.has(mark))
    }
}

impl PendingBatches {
    /// Announces a batch of these keys before it is appended; `tail` is the log's tail.
    pub fn begin(&self, keys: KeySet, tail: impl FnOnce() -> Lsn) -> UnderWay<'_> {
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
            batches: self,
            ticket,
            end: start,
        }
    }

    /// Which pending versions a get that begins now may see.
    pub fn sight(&self) -> BatchVisibility<'_> {
        BatchVisibility {
            batches: self,
            settled: self.settled(),
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

    /// Whether any batch is pending. A writer with a position in the log sees every batch before it: its reservation sees
    /// what happened before the reservations ahead of it.
    pub fn any(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// All batches with positions below are wholly in L0.
    pub fn settled(&self) -> Lsn {
        Lsn(self.settled.load(Ordering::Acquire))
    }

    /// Waits until no batch with the key of `mark` and a position before `lsn` is pending. Called by the writer of the
    /// record at `lsn` before it inserts anything. It cannot deadlock: a batch waits for lower positions only.
    pub fn wait_for_earlier(&self, lsn: Lsn, mark: u64) {
        self.wait_while(|batches| {
            let mut earlier = batches.iter().filter(|unit| unit.start < lsn);
            earlier.any(|unit| unit.keys.has(mark))
        });
    }

    fn wait_while(&self, is_in_the_way: impl Fn(&[Unit]) -> bool) {
        let mut pause = Pause::default();
        while is_in_the_way(&self.under_way.lock()) {
            pause.wait();
        }
    }
}

/// Which pending versions of one key a get may see. It goes through them from the newest to the oldest, while batches
/// end beside it. A unit may have several versions of a key, of which only the newest was ever meant to be seen: so
/// the get decides once for a whole unit, and only a unit that was settled before it began to look is seen.
pub struct BatchVisibility<'a> {
    batches: &'a PendingBatches,
    /// All batches below were settled before the get looked.
    settled: Lsn,
    /// A version whose unit was settled before the get looked again.
    proved: Cell<Option<Lsn>>,
    /// Start of the oldest unit that the get found under way.
    hidden_from: Cell<Lsn>,
    /// The get met a unit that was settled while it looked: a newer version of it may have come meanwhile.
    is_stale: Cell<bool>,
}

impl BatchVisibility<'_> {
    /// Whether the pending version at `lsn` is to be seen. To be asked from the newest to the oldest, up to the first
    /// that is seen; then [`Self::is_stale`] tells whether that counts.
    pub fn sees(&self, lsn: Lsn) -> bool {
        if lsn < self.settled || self.proved.get() == Some(lsn) {
            return true;
        }
        if lsn >= self.hidden_from.get() {
            return false;
        }
        match self.batches.start_of_unsettled(lsn) {
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
    /// of its entries is inserted in L0. Waits until no earlier unit with one of its keys is under way.
    pub fn appended(&mut self, start: Lsn, end: Lsn) {
        let mut under_way = self.batches.under_way.lock();
        if let Some(unit) = under_way.iter_mut().find(|unit| unit.ticket == self.ticket) {
            (unit.start, unit.end) = (start, end);
        }
        drop(under_way);
        self.end = end;
        self.wait_for_earlier(start);
    }

    /// As [`PendingBatches::wait_for_earlier`], for all keys of the unit.
    fn wait_for_earlier(&self, lsn: Lsn) {
        let is_this = |unit: &&Unit| unit.ticket == self.ticket;
        self.batches.wait_while(|batches| {
            let Some(own) = batches.iter().find(is_this) else {
                return false;
            };
            let mut earlier = batches.iter().filter(|unit| unit.start < lsn);
            earlier.any(|unit| !is_this(&unit) && unit.keys.meet(&own.keys))
        });
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut under_way = self.batches.under_way.lock();
        under_way.retain(|unit| unit.ticket != self.ticket);
        // Batches end in any order: with the last of them all that ended are settled.
        let ended = self.batches.ended.fetch_max(self.end.0, Ordering::Relaxed);
        let settled = under_way
            .iter()
            .map(|unit| unit.start)
            .min()
            .unwrap_or(self.end.max(Lsn(ended)));
        self.batches.settled.fetch_max(settled.0, Ordering::Release);
        self.batches.count.store(under_way.len(), Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A set of keys of one letter each.
    fn keys(letters: &str) -> KeySet {
        KeySet::of(letters.as_bytes().chunks(1).map(|key| (RegionId(1), key)))
    }

    #[test]
    fn a_write_waits_for_earlier_units_with_its_keys_and_for_no_other() {
        let batches = PendingBatches::default();
        let mut unit = batches.begin(keys("abc"), || Lsn(10));
        unit.appended(Lsn(20), Lsn(40));
        batches.wait_for_earlier(Lsn(50), mark(RegionId(1), b"d"));
        batches.wait_for_earlier(Lsn(50), mark(RegionId(2), b"b"));
        batches.wait_for_earlier(Lsn(20), mark(RegionId(1), b"b"));
        let mut other = batches.begin(keys("dxyz"), || Lsn(40));
        other.appended(Lsn(40), Lsn(50));
        let is_there = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                batches.wait_for_earlier(Lsn(50), mark(RegionId(1), b"b"));
                assert!(is_there.load(Ordering::SeqCst), "it did not wait");
            });
            scope.spawn(|| {
                let mut unit = batches.begin(keys("vwc"), || Lsn(50));
                unit.appended(Lsn(50), Lsn(60));
                assert!(is_there.load(Ordering::SeqCst), "the unit did not wait");
            });
            std::thread::sleep(std::time::Duration::from_millis(20));
            is_there.store(true, Ordering::SeqCst);
            drop(unit);
        });
    }

    #[test]
    fn marks_meet_where_a_key_is_in_both() {
        let numbers = |range: std::ops::Range<u64>| {
            let keys: Vec<_> = range.map(u64::to_be_bytes).collect();
            KeySet::of(keys.iter().map(|key| (RegionId(1), &key[..])))
        };
        let many = numbers(0..1000);
        assert!(many.meet(&numbers(999..1100)) && numbers(999..1003).meet(&many));
        assert!(!many.meet(&numbers(1000..3000)) && !many.meet(&numbers(0..0)));
    }

    fn is_settled(batches: &PendingBatches, lsn: Lsn) -> bool {
        batches.start_of_unsettled(lsn).is_none()
    }

    #[test]
    fn units_that_end_in_any_order_are_settled_with_the_last() {
        let batches = PendingBatches::default();
        let mut first = batches.begin(keys("a"), || Lsn(10));
        let mut second = batches.begin(keys("b"), || Lsn(10));
        first.appended(Lsn(10), Lsn(40));
        second.appended(Lsn(50), Lsn(60));
        drop(second);
        drop(first);
        // Without asking for a lock.
        assert_eq!(batches.settled.load(Ordering::SeqCst), 60);
    }

    #[test]
    fn a_get_sees_nothing_of_a_unit_that_ends_while_it_looks() {
        let batches = PendingBatches::default();
        let mut unit = batches.begin(keys("a"), || Lsn(10));
        unit.appended(Lsn(20), Lsn(40));
        let sight = batches.sight();
        assert!(!sight.sees(Lsn(35)));
        drop(unit);
        assert!(
            !sight.sees(Lsn(25)),
            "of the same unit, and replaced by the one before"
        );
        assert!(sight.sees(Lsn(15)) && !batches.sight().is_stale());
    }

    #[test]
    fn a_get_looks_again_if_a_unit_was_settled_before_it_asked() {
        let batches = PendingBatches::default();
        let mut unit = batches.begin(keys("a"), || Lsn(10));
        unit.appended(Lsn(20), Lsn(40));
        let sight = batches.sight();
        // A version of 35 may have come since the get took 25 for the newest.
        drop(unit);
        assert!(sight.sees(Lsn(25)) && sight.is_stale());
        assert!(sight.sees(Lsn(35)) && sight.is_stale());
        assert!(sight.sees(Lsn(35)) && !sight.is_stale());
    }

    #[test]
    fn a_unit_is_settled_when_it_and_no_other_covers_the_position() {
        let batches = PendingBatches::default();
        let mut first = batches.begin(keys("a"), || Lsn(10));
        let mut second = batches.begin(keys("b"), || Lsn(10));
        second.appended(Lsn(50), Lsn(60));
        first.appended(Lsn(20), Lsn(40));
        assert!(!is_settled(&batches, Lsn(20)) && !is_settled(&batches, Lsn(59)));
        assert!(is_settled(&batches, Lsn(45)));
        drop(second);
        assert!(is_settled(&batches, Lsn(55)) && !is_settled(&batches, Lsn(30)));
        drop(first);
        assert!(is_settled(&batches, Lsn(30)) && !batches.any());
    }

    #[test]
    fn a_unit_that_is_not_appended_yet_hides_no_other() {
        let batches = PendingBatches::default();
        let waiting = batches.begin(keys("a"), || Lsn(100));
        let mut quick = batches.begin(keys("b"), || Lsn(100));
        quick.appended(Lsn(100), Lsn(110));
        drop(quick);
        assert_eq!(batches.settled.load(Ordering::SeqCst), 100);
        // But not what is wholly in L0: that was acknowledged.
        assert!(is_settled(&batches, Lsn(100)) && is_settled(&batches, Lsn(109)));
        drop(waiting);
    }
}
