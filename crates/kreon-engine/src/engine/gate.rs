//! The gate between writers and those who need a moment without any.
//!
//! A writer holds the gate from the reservation of its log position until its entries are in L0.
//! Whoever closes the gate sees a log tail before which everything is in L0 and behind which nothing
//! is: that is a snapshot's LSN, and the border between L0 and L0' (`Kreon 3.2.1`).
//!
//! It is a lock for many readers cut into stripes, so that writers on different cores do not meet:
//! entering costs one uncontended read lock (about 10 ns); closing takes all the stripes.

#[cfg(shuttle)]
use shuttle::thread_local;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::sync::{AtomicU64, RwLock, RwLockReadGuard, RwLockWriteGuard};

const STRIPES: usize = if cfg!(shuttle) { 3 } else { 32 };

/// Two cache lines: neighbours are fetched in pairs.
#[repr(align(128))]
#[derive(Default)]
struct Stripe(RwLock<()>);

/// See the module's text.
#[derive(Default)]
pub struct Gate {
    stripes: [Stripe; STRIPES],
    /// Closings so far, and marks between them.
    closings: AtomicU64,
}

/// A writer inside the gate.
pub struct Inside<'a>(#[allow(dead_code, reason = "held for its drop")] RwLockReadGuard<'a, ()>);

/// The gate is closed and nobody is inside.
pub struct Closed<'a> {
    _stripes: [RwLockWriteGuard<'a, ()>; STRIPES],
    number: u64,
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
        Inside(self.stripes[stripe_of_thread()].0.read())
    }

    /// Closes the gate and waits until everybody has left. Stripes are taken in order, so two that
    /// close at once do not block each other.
    pub fn close(&self) -> Closed<'_> {
        let stripes = self.stripes.each_ref().map(|stripe| stripe.0.write());
        Closed {
            _stripes: stripes,
            number: self.closings.fetch_add(1, Ordering::AcqRel),
        }
    }

    /// A number between those of closings: who enters after a closing with a higher number finds what was done
    /// before this call.
    pub fn mark(&self) -> u64 {
        // Part of one chain of changes with the closings, each of which sees those before.
        self.closings.fetch_add(1, Ordering::AcqRel)
    }
}

fn next_stripe() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
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
