//! How far the log is on the device.
//!
//! Invariants: each position only grows, and `claim <= durable <= written`.

use kreon_base::Lsn;
use kreon_sync::{AtomicU64, Ordering};

/// Three positions; all before each is as its name says.
pub(super) struct Positions {
    /// On the device, but perhaps not durable.
    written: AtomicU64,
    /// Survives a cut of the power.
    durable: AtomicU64,
    /// See [`Log::claim`](super::Log::claim).
    claim: AtomicU64,
}

impl Positions {
    /// Of a log that goes on at `resume`.
    pub fn new(resume: Lsn) -> Self {
        Self {
            written: AtomicU64::new(resume.0),
            durable: AtomicU64::new(resume.0),
            claim: AtomicU64::new(resume.0),
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
    }

    pub fn claim_upto(&self, claim: Lsn) {
        self.claim.fetch_max(claim.0, Ordering::AcqRel);
    }
}
