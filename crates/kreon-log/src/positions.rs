//! How far the log is on the device.
//!
//! Invariants: each position only grows, and `claim <= durable <= written`.

use std::time::Duration;

use kreon_base::Lsn;
use kreon_sync::{AtomicU32, AtomicU64, Condvar, Mutex, Ordering};

/// Three positions; all before each is as its name says.
pub(super) struct Positions {
    /// On the device, but perhaps not durable.
    written: AtomicU64,
    /// Survives a cut of the power.
    durable: AtomicU64,
    /// See [`Log::claim`](super::Log::claim).
    claim: AtomicU64,
    /// How often watchers were told to look again.
    told: AtomicU64,
    /// Threads that wait to be told, and what wakes them.
    watchers: AtomicU32,
    watched: Mutex<()>,
    called: Condvar,
}

impl Positions {
    /// Of a log that goes on at `resume`.
    pub fn new(resume: Lsn) -> Self {
        Self {
            written: AtomicU64::new(resume.0),
            durable: AtomicU64::new(resume.0),
            claim: AtomicU64::new(resume.0),
            told: AtomicU64::new(0),
            watchers: AtomicU32::new(0),
            watched: Mutex::new(()),
            called: Condvar::new(),
        }
    }

    #[inline]
    pub fn written(&self) -> Lsn {
        Lsn(self.written.load(Ordering::Acquire))
    }

    #[inline]
    pub fn durable(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::Acquire))
    }

    /// See [`Log::claim`](super::Log::claim).
    #[inline]
    pub fn claim(&self) -> Lsn {
        Lsn(self.claim.load(Ordering::Acquire))
    }

    /// A write that ends at `end` has landed, and all writes before it. One thread at a time calls this.
    pub fn landed(&self, end: Lsn) {
        debug_assert!(self.written() <= end, "a write landed out of order");
        self.written.store(end.0, Ordering::Release);
    }

    /// A flush has ended that was begun when everything before `written` was on the device, and the mirror has answered
    /// as much.
    pub fn flushed(&self, written: Lsn, claim: Lsn) {
        assert!(
            claim <= written && written <= self.written(),
            "a flush covers only what was written: {claim} {written}"
        );
        self.durable_upto(written);
        self.claim_upto(claim);
    }

    pub fn durable_upto(&self, durable: Lsn) {
        self.durable.fetch_max(durable.0, Ordering::AcqRel);
        self.tell();
    }

    /// Lets watchers look again. All stores and loads here have one order: either this thread sees the watcher, or the watcher
    /// sees that it was told.
    pub fn tell(&self) {
        self.told.fetch_add(1, Ordering::SeqCst);
        if self.watchers.load(Ordering::SeqCst) > 0 {
            drop(self.watched.lock());
            self.called.notify_all();
        }
    }

    /// See [`Log::told`](super::Log::told).
    pub fn told(&self) -> u64 {
        self.told.load(Ordering::SeqCst)
    }

    /// See [`Log::wait_until_told`](super::Log::wait_until_told).
    pub fn wait_until_told(&self, told: u64, patience: Duration) {
        self.watchers.fetch_add(1, Ordering::SeqCst);
        let mut watched = self.watched.lock();
        if self.told() == told {
            self.called.wait_for(&mut watched, patience);
        }
        drop(watched);
        self.watchers.fetch_sub(1, Ordering::SeqCst);
    }

    pub fn claim_upto(&self, claim: Lsn) {
        self.claim.fetch_max(claim.0, Ordering::AcqRel);
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_was_told_between_its_look_and_its_wait_does_not_wait() {
        let positions = Positions::new(Lsn(8));
        let told = positions.told();
        positions.tell();
        let begun = std::time::Instant::now();
        positions.wait_until_told(told, Duration::from_secs(60));
        assert!(begun.elapsed() < Duration::from_secs(30));
        positions.wait_until_told(positions.told(), Duration::from_millis(1));
    }
}
