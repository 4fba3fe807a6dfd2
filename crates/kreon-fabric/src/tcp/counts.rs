//! How often peers did what they must not.

use std::sync::atomic::{AtomicU64, Ordering};

use kreon_wire::ViolationCounts;

/// How often something happened since the fabric was made.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    pub(super) fn add_one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// How often.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What one process has seen of others.
#[derive(Debug, Default)]
pub struct TcpCounts {
    /// Headers that nothing may follow, and handshakes out of turn, by class.
    pub violations: ViolationCounts,
    /// Peers that did not prove that they have the key, or were of another cluster.
    pub not_proven: Count,
    /// Connections that were not proven in time or ended before.
    pub not_finished: Count,
    /// Proven peers that were not let in.
    pub refused: Count,
    /// Proven peers for which there was no room.
    pub over_limit: Count,
    /// Links that were made.
    pub linked: Count,
    /// Links that broke, violations included; not those that one of the ends closed.
    pub broken: Count,
}
