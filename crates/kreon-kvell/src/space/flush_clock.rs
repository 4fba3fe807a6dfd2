//! Which flush covers which writes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use kreon_base::Result;
use parking_lot::Mutex;

/// Number of a flush, from 1 on.
pub type FlushNo = u64;

/// Numbers the flushes of a device. One is under way at most; the next covers all writes whose end was seen before it
/// began.
#[derive(Debug, Default)]
pub struct FlushClock {
    begun: AtomicU64,
    /// The last one that ended successfully.
    ended: AtomicU64,
    has_failed: AtomicBool,
    /// Held during flushes beside the numbered ones.
    aside: Mutex<()>,
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

    /// The flush that was under way has ended, by itself successfully. `false`: it makes nothing durable, as a flush beside
    /// it has failed.
    #[must_use]
    pub fn end(&self, flush: FlushNo) -> bool {
        // Of two flushes of a file the kernel tells only one of a failure: who has met it says so before this goes on.
        drop(self.aside.lock());
        if self.has_failed() {
            return false;
        }
        self.ended.store(flush, Ordering::SeqCst);
        true
    }

    /// Carries out a flush beside the numbered ones. Whatever the kind of its failure, what it was to cover is in doubt for
    /// ever.
    pub fn beside(&self, flush: impl FnOnce() -> Result<()>) -> Result<()> {
        let _aside = self.aside.lock();
        flush().inspect_err(|_| self.fail())
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
}

#[cfg(test)]
mod tests {
    use kreon_base::Error;

    use super::*;

    #[test]
    fn a_flush_says_nothing_if_one_beside_it_has_failed() {
        let clock = FlushClock::default();
        let first = clock.begin();
        assert_eq!(first.map(|flush| clock.end(flush)), Some(true));
        let second = clock.begin();
        assert!(clock.beside(|| Err(Error::corruption("failed"))).is_err());
        assert_eq!(second.map(|flush| clock.end(flush)), Some(false));
        let ended = clock.ended.load(Ordering::SeqCst);
        assert_eq!((ended, clock.begin()), (1, None));
    }

    #[test]
    fn a_flush_ends_after_those_beside_it() {
        let clock = FlushClock::default();
        let flush = clock.begin().unwrap_or_default();
        let (began, has_begun) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let beside = scope.spawn(|| {
                clock.beside(|| {
                    began
                        .send(())
                        .map_err(|_| Error::corruption("nobody listens"))?;
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    Err(Error::corruption("failed"))
                })
            });
            assert_eq!(has_begun.recv(), Ok(()));
            assert!(!clock.end(flush));
            assert!(beside.join().is_ok_and(|outcome| outcome.is_err()));
        });
    }
}
