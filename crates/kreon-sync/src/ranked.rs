//! Locks with a rank: a thread that holds one takes only those of higher rank. Debug builds check it at every lock, so
//! that two threads can never wait for each other; release builds pay nothing.

use std::ops::{Deref, DerefMut};

use crate::{Mutex, MutexGuard};

/// The order in which locks are taken, from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// One image of L0 at a time.
    L0Image,
    /// One round of reorganisation at a time.
    Reorganisation,
    /// One round of collection at a time.
    Collection,
    /// The stream of moved records.
    MovedStream,
    /// The right to change the levels.
    Changes,
    /// One change from L0' to L0 at a time.
    Freezes,
    /// The number of the next region.
    RegionNumbers,
    /// Inside the gate, or the gate closed.
    Gate,
    /// One thread reclaims at a time.
    Reclaiming,
    /// What is durable.
    Ledger,
    /// Segments and pages in use.
    Allocator,
}

/// A lock of some rank that this thread holds.
#[derive(Debug)]
pub struct Held {
    #[cfg(all(debug_assertions, not(shuttle)))]
    rank: Rank,
}

#[cfg(all(debug_assertions, not(shuttle)))]
mod held {
    use std::cell::RefCell;

    use super::{Held, Rank};

    thread_local! {
        static HELD: RefCell<Vec<Rank>> = const { RefCell::new(Vec::new()) };
    }

    impl Held {
        /// Notes that this thread is about to wait for a lock.
        ///
        /// # Panics
        /// In debug builds, if it holds one of the same or a higher rank.
        #[track_caller]
        pub fn wait(rank: Rank) -> Self {
            HELD.with_borrow(|held| {
                let last = held.iter().max();
                assert!(
                    last.is_none_or(|last| *last < rank),
                    "a lock of rank {rank:?} is taken under one of rank {last:?}"
                );
            });
            Self::taken(rank)
        }

        /// Notes that this thread has got a lock without waiting.
        pub fn taken(rank: Rank) -> Self {
            HELD.with_borrow_mut(|held| held.push(rank));
            Self { rank }
        }
    }

    impl Drop for Held {
        fn drop(&mut self) {
            HELD.with_borrow_mut(|held| {
                if let Some(at) = held.iter().rposition(|rank| *rank == self.rank) {
                    held.swap_remove(at);
                }
            });
        }
    }
}

#[cfg(not(all(debug_assertions, not(shuttle))))]
impl Held {
    /// Notes that this thread is about to wait for a lock.
    #[inline]
    pub fn wait(_: Rank) -> Self {
        Self {}
    }

    /// Notes that this thread has got a lock without waiting.
    #[inline]
    pub fn taken(_: Rank) -> Self {
        Self {}
    }
}

/// A mutex with a rank.
#[derive(Debug)]
pub struct RankedMutex<T> {
    rank: Rank,
    inner: Mutex<T>,
}

/// A held [`RankedMutex`].
pub struct RankedGuard<'a, T> {
    // Dropped first: the lock is free before this thread forgets that it held it.
    guard: MutexGuard<'a, T>,
    _held: Held,
}

impl<T> RankedMutex<T> {
    /// A free mutex of this rank.
    pub const fn new(rank: Rank, value: T) -> Self {
        Self {
            rank,
            inner: Mutex::new(value),
        }
    }

    /// Takes it.
    ///
    /// # Panics
    /// In debug builds, if this thread holds a lock of the same or a higher rank.
    #[track_caller]
    #[inline]
    pub fn lock(&self) -> RankedGuard<'_, T> {
        let held = Held::wait(self.rank);
        RankedGuard {
            guard: self.inner.lock(),
            _held: held,
        }
    }

    /// Takes it if it is free. Without waiting, no order can go wrong.
    #[track_caller]
    #[inline]
    pub fn try_lock(&self) -> Option<RankedGuard<'_, T>> {
        self.inner.try_lock().map(|guard| RankedGuard {
            guard,
            _held: Held::taken(self.rank),
        })
    }
}

impl<T> Deref for RankedGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for RankedGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

#[cfg(all(test, debug_assertions, not(shuttle)))]
mod tests {
    use super::*;

    static LEDGER: RankedMutex<u8> = RankedMutex::new(Rank::Ledger, 1);
    static ALLOCATOR: RankedMutex<u8> = RankedMutex::new(Rank::Allocator, 2);

    #[test]
    fn locks_are_taken_by_rank_and_given_up_in_any_order() {
        for _ in 0..2 {
            let ledger = LEDGER.lock();
            let allocator = ALLOCATOR.lock();
            assert_eq!((*ledger, *allocator), (1, 2));
            drop(ledger);
        }
    }

    #[test]
    #[should_panic(expected = "a lock of rank Ledger is taken under one of rank Some(Allocator)")]
    fn a_lock_against_its_rank_panics() {
        let free = RankedMutex::new(Rank::Ledger, ());
        let _allocator = ALLOCATOR.lock();
        free.lock();
    }

    #[test]
    #[should_panic(expected = "is taken under one of rank Some(Gate)")]
    fn a_lock_of_the_same_rank_panics() {
        let _one = Held::wait(Rank::Gate);
        let _other = Held::wait(Rank::Gate);
    }

    #[test]
    fn a_lock_that_is_free_may_be_tried_against_its_rank() {
        let free = RankedMutex::new(Rank::Ledger, ());
        let _allocator = Held::wait(Rank::Allocator);
        assert!(free.try_lock().is_some());
    }
}
