//! The gate: writers enter it; snapshots and freezes close it for a moment without writers.
//!
//! A writer holds the gate from the reservation of its log position until its entries are in L0.
//! While it is closed, everything before the tail of the log is in L0 and nothing behind it: that tail is the LSN
//! of a snapshot, and the border between L0 and L0' (`Kreon 3.2.1`).
//!
//! It is a lock for many readers cut into stripes, so that writers on different cores do not meet:
//! entering costs one uncontended read lock (about 10 ns); closing takes all the stripes that any thread has entered so
//! far. Such a stripe is counted before it is entered for the first time, in turn with the closings.

#[cfg(shuttle)]
use shuttle::thread_local;
use std::cell::Cell;

use kreon_sync::{
    AtomicU64, AtomicUsize, Held, Mutex, MutexGuard, Ordering, Rank, RwLock, RwLockReadGuard,
    RwLockWriteGuard,
};

const STRIPES: usize = if cfg!(shuttle) { 3 } else { 32 };

/// Two cache lines: neighbours are fetched in pairs.
#[repr(align(128))]
#[derive(Default)]
struct Stripe(RwLock<()>);

/// A reader-writer lock in stripes: writers enter one stripe each, closing takes all.
#[derive(Default)]
pub struct Gate {
    stripes: [Stripe; STRIPES],
    /// Stripes behind these were never entered. Grows in turn.
    used: AtomicUsize,
    /// Held while the gate is closed, and while `used` grows.
    turn: Mutex<()>,
    /// Closings so far, and marks between them.
    closings: AtomicU64,
}

/// A writer inside the gate.
pub struct Inside<'a> {
    _stripe: RwLockReadGuard<'a, ()>,
    _held: Held,
}

/// The closed gate: no writer is inside. Opens when dropped.
pub struct Closed<'a> {
    _stripes: [Option<RwLockWriteGuard<'a, ()>>; STRIPES],
    // Behind the stripes: who grows the count then enters an open stripe.
    _turn: MutexGuard<'a, ()>,
    number: u64,
    _held: Held,
}

impl Closed<'_> {
    /// Closings are numbered in their order.
    pub fn number(&self) -> u64 {
        self.number
    }
}

impl Gate {
    /// Enters; waits while the gate is closed.
    pub fn enter(&self) -> Inside<'_> {
        let held = Held::wait(Rank::Gate);
        let stripe = stripe_of_thread();
        if stripe >= self.used.load(Ordering::Acquire) {
            self.use_stripe(stripe);
        }
        Inside {
            _stripe: self.stripes[stripe].0.read(),
            _held: held,
        }
    }

    /// Counts a stripe that is entered for the first time. A closing that did not count it has ended then.
    #[cold]
    fn use_stripe(&self, stripe: usize) {
        let _turn = self.turn.lock();
        self.used.fetch_max(stripe + 1, Ordering::AcqRel);
    }

    /// Closes the gate and waits until all writers have left. One closing at a time.
    pub fn close(&self) -> Closed<'_> {
        let held = Held::wait(Rank::Gate);
        let turn = self.turn.lock();
        let used = self.used.load(Ordering::Acquire);
        let mut stripes = self.stripes.iter().take(used);
        let stripes = std::array::from_fn(|_| stripes.next().map(|stripe| stripe.0.write()));
        Closed {
            _stripes: stripes,
            _turn: turn,
            number: self.closings.fetch_add(1, Ordering::SeqCst),
            _held: held,
        }
    }

    /// Whether the closing with this number was the last, and no mark came after it.
    pub fn is_last(&self, number: u64) -> bool {
        self.closings.load(Ordering::SeqCst) == number + 1
    }

    /// A number between those of closings: a writer that enters after a closing with a higher number sees what was done
    /// before this call.
    pub fn mark(&self) -> u64 {
        // Part of one chain of changes with the closings, each of which sees those before.
        self.closings.fetch_add(1, Ordering::SeqCst)
    }
}

fn next_stripe() -> usize {
    static THREADS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    THREADS.fetch_add(1, Ordering::Relaxed) % STRIPES
}

fn stripe_of_thread() -> usize {
    thread_local! {
        static STRIPE: Cell<usize> = Cell::new(next_stripe());
    }
    STRIPE.with(Cell::get)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[test]
    fn nobody_is_inside_while_the_gate_is_closed() {
        let gate = Gate::default();
        let inside = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        let _inside = gate.enter();
                        inside.fetch_add(1, Ordering::SeqCst);
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
            for _ in 0..200 {
                let _closed = gate.close();
                assert_eq!(inside.load(Ordering::SeqCst), 0);
            }
        });
    }
}
