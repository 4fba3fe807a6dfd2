//! Mutexes that tell how long they are held, and atomics that tell how often they are written.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::times::{self, Hold};

/// Numbers of the locks, in [`times::LOCKS`].
macro_rules! locks {
    ($($(#[$about:meta])* $name:ident = $number:literal;)*) => {
        $($(#[$about])* pub(crate) type $name<T> = Timed<T, $number>;)*
    };
}

locks! {
    /// The state of the pages of a shard.
    ShardMutex = 0;
    /// A list of free frames.
    ListMutex = 1;
    /// Retired frames that readers still use.
    LimboMutex = 2;
    /// Whose turn it is to evict.
    EvictMutex = 3;
    /// Whose turn it is to look for room in the page array.
    RoomMutex = 4;
    /// Whose turn it is to write back because too many pages are dirty.
    WriterMutex = 5;
    /// A shard of the record cache.
    RecordsMutex = 6;
}

/// Holds a [`ShardMutex`].
pub(crate) type ShardGuard<'a, T> = TimedGuard<'a, T, 0>;
/// Holds an [`EvictMutex`].
pub(crate) type EvictGuard<'a, T> = TimedGuard<'a, T, 3>;

/// A mutex whose holds are timed under the number `LOCK`.
#[derive(Default)]
pub(crate) struct Timed<T, const LOCK: usize>(parking_lot::Mutex<T>);

/// A hold of a [`Timed`].
pub(crate) struct TimedGuard<'a, T, const LOCK: usize> {
    // Dropped in this order: the hold ends when the lock is free.
    guard: parking_lot::MutexGuard<'a, T>,
    hold: Hold<LOCK>,
}

impl<T, const LOCK: usize> Timed<T, LOCK> {
    pub(crate) const fn new(value: T) -> Self {
        Self(parking_lot::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> TimedGuard<'_, T, LOCK> {
        self.try_lock().unwrap_or_else(|| {
            times::waited(LOCK);
            TimedGuard {
                guard: self.0.lock(),
                hold: Hold::begin(),
            }
        })
    }

    pub(crate) fn try_lock(&self) -> Option<TimedGuard<'_, T, LOCK>> {
        Some(TimedGuard {
            guard: self.0.try_lock()?,
            hold: Hold::begin(),
        })
    }
}

impl<T, const LOCK: usize> Deref for TimedGuard<'_, T, LOCK> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T, const LOCK: usize> DerefMut for TimedGuard<'_, T, LOCK> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// A condition variable; a wait interrupts the hold.
#[derive(Default)]
pub(crate) struct Condvar(parking_lot::Condvar);

impl Condvar {
    pub(crate) const fn new() -> Self {
        Self(parking_lot::Condvar::new())
    }

    pub(crate) fn wait<T, const LOCK: usize>(&self, guard: &mut TimedGuard<'_, T, LOCK>) {
        guard.hold.end();
        self.0.wait(&mut guard.guard);
        guard.hold.begin_again();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// Atomics whose writes are counted under the number `COUNT`, in [`times::COUNTS`].
macro_rules! counts {
    ($($(#[$about:meta])* $name:ident($atomic:ident, $number:ty) = $count:literal;)*) => {$(
        $(#[$about])*
        #[derive(Default)]
        pub(crate) struct $name($atomic);

        #[allow(dead_code, reason = "each count is used in its own way")]
        impl $name {
            pub(crate) const fn new(value: $number) -> Self {
                Self($atomic::new(value))
            }

            pub(crate) fn load(&self, order: Ordering) -> $number {
                self.0.load(order)
            }

            pub(crate) fn fetch_add(&self, value: $number, order: Ordering) -> $number {
                times::written($count);
                self.0.fetch_add(value, order)
            }

            pub(crate) fn fetch_sub(&self, value: $number, order: Ordering) -> $number {
                times::written($count);
                self.0.fetch_sub(value, order)
            }
        }
    )*};
}

counts! {
    /// Resident pages of a priority.
    ResidentCount(AtomicUsize, usize) = 0;
    /// Dirty pages.
    DirtyCount(AtomicUsize, usize) = 1;
    /// Free frames.
    FreeCount(AtomicUsize, usize) = 2;
    /// A statistic.
    StatisticCount(AtomicU64, u64) = 3;
    /// A generation of records.
    GenerationCount(AtomicU32, u32) = 4;
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::{Duration, Instant};

    use super::super::times::{LockTimes, clock_ticks, lock_times};
    use super::*;

    /// What is told of the turn of writeback, which nothing else in the tests of this crate holds for long.
    fn told() -> LockTimes {
        let mut all = lock_times([1; 7]);
        all.nth(5).expect("such a lock")
    }

    #[test]
    fn a_hold_lasts_as_long_as_the_lock_is_held_and_who_finds_it_held_is_counted() {
        let lock = WriterMutex::new(());
        let (before, start) = (told(), (Instant::now(), clock_ticks()));
        thread::scope(|scope| {
            let held = lock.lock();
            let inner = ListMutex::new(());
            drop(inner.lock());
            let waits = scope.spawn(|| drop(lock.lock()));
            while told().waits == before.waits {
                thread::yield_now();
            }
            thread::sleep(Duration::from_millis(30));
            drop(held);
            waits.join().expect("the thread that waited");
        });
        let after = told();
        let seconds = start.0.elapsed().as_secs_f64();
        let ticks_per_second = (clock_ticks() - start.1) as f64 / seconds;
        let held_seconds = (after.held_ticks - before.held_ticks) as f64 / ticks_per_second;
        assert!((0.030..=seconds).contains(&held_seconds), "{held_seconds}");
        assert!(after.holds >= before.holds + 2);
        assert!(after.inner_holds > before.inner_holds);
    }
}
