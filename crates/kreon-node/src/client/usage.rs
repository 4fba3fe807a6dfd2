//! What all clients take together.

use std::sync::Arc;

use kreon_sync::{AtomicU64, AtomicUsize, Ordering};
use kreon_wire::{Violation, ViolationCounts};

use crate::settings::ClientLimits;
use crate::status::ClientStatus;

/// What all clients take together, and what was met.
#[derive(Debug, Default)]
pub struct Usage {
    pub limits: ClientLimits,
    pub links: AtomicUsize,
    pub under_way: AtomicUsize,
    pub bytes: AtomicUsize,
    pub snapshots: AtomicUsize,
    pub requests: AtomicU64,
    pub closed_for_violation: AtomicU64,
    pub closed_unread: AtomicU64,
    pub busy: AtomicU64,
    pub violations: ViolationCounts,
}

impl Usage {
    pub fn new(limits: ClientLimits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            ..Self::default()
        })
    }

    /// A link is closed for this.
    pub fn violated(&self, violation: Violation) {
        self.violations.count(violation);
        self.closed_for_violation.fetch_add(1, Ordering::Relaxed);
    }

    pub fn status(&self) -> ClientStatus {
        let of = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        ClientStatus {
            links: of(&self.links),
            requests: self.requests.load(Ordering::Relaxed),
            under_way: of(&self.under_way),
            bytes: of(&self.bytes),
            snapshots: of(&self.snapshots),
            closed_for_violation: self.closed_for_violation.load(Ordering::Relaxed),
            closed_unread: self.closed_unread.load(Ordering::Relaxed),
            busy: self.busy.load(Ordering::Relaxed),
        }
    }
}
