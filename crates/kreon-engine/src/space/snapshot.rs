//! A snapshot of the figures of space: writers read it without waiting for the allocator, which a checkpoint may hold.

use kreon_base::Lsn;

use super::plan::Plan;
use kreon_sync::{AtomicU64, Mutex, Ordering};
use kreon_volume::Space;

/// So many looks in a row may find the allocator taken: what is in reserve for L0s is ahead of them by more.
const MISSED_LOOKS_MAX: u64 = 2;

/// Figures of space that writers read. Each is as old as the last checkpoint or the last look.
#[derive(Default)]
pub(super) struct SpaceSnapshot {
    plan: Mutex<Plan>,
    /// What the allocator last told.
    space: Mutex<Space>,
    /// Looks since the allocator was last told what L0s need.
    missed_looks: AtomicU64,
    /// No spill needs what the log has before this position.
    spilled_to: AtomicU64,
    /// L0' begins here in the log.
    active_from: AtomicU64,
    /// Bytes of sealed segments that no tree points at.
    dead_bytes: AtomicU64,
    /// What the store may take beyond the plan, because values are being laid together.
    excess_bytes: AtomicU64,
    /// Of the bytes that no spill has taken, how many in a million make as many dead.
    hidden_millionths: AtomicU64,
}

impl SpaceSnapshot {
    /// The current plan.
    pub fn plan(&self) -> Plan {
        *self.plan.lock()
    }

    /// Replaces the plan.
    pub fn set_plan(&self, plan: Plan) {
        *self.plan.lock() = plan;
    }

    /// What the allocator last told.
    pub fn space(&self) -> Space {
        *self.space.lock()
    }

    /// Notes what the allocator tells.
    pub fn set_space(&self, space: Space) {
        *self.space.lock() = space;
    }

    /// A look could not tell the allocator anything; whether that was once too often.
    pub fn is_look_overdue(&self) -> bool {
        self.missed_looks.fetch_add(1, Ordering::Relaxed) >= MISSED_LOOKS_MAX
    }

    /// A look told it.
    pub fn looked(&self) {
        self.missed_looks.store(0, Ordering::Relaxed);
    }

    /// What the last commit has changed.
    pub fn committed(&self, spilled_to: Lsn, dead_bytes: u64) {
        self.spilled_to.store(spilled_to.0, Ordering::Relaxed);
        self.dead_bytes.store(dead_bytes, Ordering::Relaxed);
    }

    /// L0' begins at `position`.
    pub fn frozen_at(&self, position: Lsn) {
        self.active_from.store(position.0, Ordering::Relaxed);
    }

    /// Bytes of a log that ends at `tail` which no spill has taken.
    pub fn unspilled_bytes(&self, tail: Lsn) -> u64 {
        tail.0
            .saturating_sub(self.spilled_to.load(Ordering::Relaxed))
    }

    /// Bytes of a log that ends at `tail` since the last freeze.
    pub fn active_bytes(&self, tail: Lsn) -> u64 {
        tail.0
            .saturating_sub(self.active_from.load(Ordering::Relaxed))
    }

    /// Bytes of sealed segments that no tree points at.
    pub fn dead_bytes(&self) -> u64 {
        self.dead_bytes.load(Ordering::Relaxed)
    }

    /// Bytes that the store may take beyond the plan, because values are being laid together.
    pub fn excess_bytes(&self) -> u64 {
        self.excess_bytes.load(Ordering::Relaxed)
    }

    /// Sets what the store may take beyond the plan, in bytes.
    pub fn set_excess_bytes(&self, bytes: u64) {
        self.excess_bytes.store(bytes, Ordering::Relaxed);
    }

    /// What so many bytes that no spill has taken hide, about.
    pub fn hidden_of(&self, bytes: u64) -> u64 {
        let millionths = u128::from(self.hidden_millionths.load(Ordering::Relaxed));
        (u128::from(bytes) * millionths / 1_000_000) as u64
    }

    /// Of `of` bytes that were judged `dead` make as many dead.
    pub fn judged(&self, dead: u64, of: u64) {
        let millionths = u128::from(dead) * 1_000_000 / u128::from(of.max(1));
        let millionths = millionths.min(1_000_000) as u64;
        self.hidden_millionths.store(millionths, Ordering::Relaxed);
    }
}
