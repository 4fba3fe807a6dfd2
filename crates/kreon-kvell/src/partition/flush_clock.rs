//! Which flush covers which writes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Number of a flush, from 1 on.
pub type FlushNo = u64;

/// Numbers the flushes of a device. One is under way at most; the next covers all writes whose end was seen before it
/// began.
#[derive(Debug, Default)]
pub struct FlushClock {
    begun: AtomicU64,
    ended: AtomicU64,
    has_failed: AtomicBool,
}

impl FlushClock {
    /// The number of the first flush that covers a write whose end has just been seen.
    pub fn covers_now(&self) -> FlushNo {
        // A flush that begins after this load has a larger number than what is loaded.
        self.begun.load(Ordering::SeqCst) + 1
    }

    /// Begins the next flush; `None` while one is under way, and after a failure.
    pub fn begin(&self) -> Option<FlushNo> {
        if self.has_failed() {
            return None;
        }
        let ended = self.ended.load(Ordering::SeqCst);
        let next = ended + 1;
        let begun = self
            .begun
            .compare_exchange(ended, next, Ordering::SeqCst, Ordering::SeqCst);
        begun.is_ok().then_some(next)
    }

    /// The flush that was under way has ended, successfully.
    pub fn end(&self, flush: FlushNo) {
        self.ended.store(flush, Ordering::SeqCst);
    }

    /// A flush or a write has failed. Nothing can be made durable any more: a later flush that succeeds says nothing about
    /// what the failed one was to cover.
    pub fn fail(&self) {
        self.has_failed.store(true, Ordering::SeqCst);
    }

    /// Whether a flush or a write has failed.
    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::SeqCst)
    }

    /// The last flush that ended successfully.
    pub fn ended(&self) -> FlushNo {
        self.ended.load(Ordering::SeqCst)
    }
}
