//! The gate: writers enter it; a freeze closes it for a moment without writers.
//!
//! It is a lock for many readers cut into stripes, so that writers on different cores do not meet.

use kreon_sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::counters::thread_line;

const STRIPES: usize = if cfg!(shuttle) { 3 } else { 16 };

/// Two cache lines: neighbours are fetched in pairs.
#[repr(align(128))]
#[derive(Default)]
struct Stripe(RwLock<()>);

/// A lock that writers share and a freeze has alone.
#[derive(Default)]
pub(crate) struct Gate {
    stripes: [Stripe; STRIPES],
    /// Held while the gate is closed: two that close it would wait for each other.
    turn: Mutex<()>,
}

/// A writer inside the gate.
pub(crate) struct Inside<'a> {
    _stripe: RwLockReadGuard<'a, ()>,
}

/// The closed gate: no writer is inside. Opens when dropped.
pub(crate) struct Closed<'a> {
    _stripes: [RwLockWriteGuard<'a, ()>; STRIPES],
    _turn: MutexGuard<'a, ()>,
}

impl Gate {
    /// Enters; waits while the gate is closed.
    #[inline]
    pub(crate) fn enter(&self) -> Inside<'_> {
        Inside {
            _stripe: self.stripes[thread_line(STRIPES)].0.read(),
        }
    }

    /// Closes the gate and waits until all writers have left.
    pub(crate) fn close(&self) -> Closed<'_> {
        let turn = self.turn.lock();
        Closed {
            _stripes: std::array::from_fn(|i| self.stripes[i].0.write()),
            _turn: turn,
        }
    }
}
