//! Waking tasks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// Calls `waker`, which is code of the caller's. Should it panic, then neither the thread that does it for
/// many is lost, nor who is woken after it; the panic's message was printed by then.
pub fn wake(waker: Waker) {
    // The models end their threads by panics of their own.
    if cfg!(any(loom, shuttle)) {
        return waker.wake();
    }
    let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
}
