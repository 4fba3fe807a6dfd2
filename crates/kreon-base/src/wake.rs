//! Waking tasks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// Calls `waker`, which is foreign code, and contains its panics: one panic must not end a thread that wakes many
/// tasks, nor keep it from waking the others. The panic hook has printed the message by then.
pub fn wake(waker: Waker) {
    // Loom and shuttle end the threads of a model by panics of their own, which must pass through.
    if cfg!(any(loom, shuttle)) {
        return waker.wake();
    }
    let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
}
