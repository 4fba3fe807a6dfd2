//! A read-write lock of one word, instead of the optimistic latch.

use kreon_base::sync::{AtomicU32, Ordering};

#[path = "../../src/latch.rs"]
#[allow(
    dead_code,
    reason = "of the library's latch only the waiting is used here"
)]
mod optimistic;

pub(crate) use optimistic::Backoff;

const WRITER: u32 = 1 << 31;

/// Number of readers, or [`WRITER`].
pub(crate) struct Latch(AtomicU32);

impl Latch {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    pub(crate) fn read(&self) {
        let mut pause = Backoff::default();
        while self.0.fetch_add(1, Ordering::Acquire) & WRITER != 0 {
            self.0.fetch_sub(1, Ordering::Relaxed);
            pause.wait();
        }
    }

    pub(crate) fn end_read(&self) {
        self.0.fetch_sub(1, Ordering::Release);
    }

    pub(crate) fn write(&self) {
        let mut pause = Backoff::default();
        let take = || {
            self.0
                .compare_exchange_weak(0, WRITER, Ordering::Acquire, Ordering::Relaxed)
        };
        while take().is_err() {
            pause.wait();
        }
    }

    pub(crate) fn end_write(&self) {
        self.0.fetch_sub(WRITER, Ordering::Release);
    }
}
