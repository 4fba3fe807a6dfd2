//! What a follower grants.

use kreon_wire::{GrantBytes, Room};

/// How much a follower keeps in memory, and how much space on its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Bytes of log: as much as the primary's log buffers, so that a stall here is bridged as one there is.
    pub log_bytes: u64,
    /// Bytes of pages: how long log waits behind them.
    pub pages_bytes: u64,
    /// Bytes of space for which the primary does not wait.
    pub space_bytes: u64,
}

impl Default for Capacity {
    fn default() -> Self {
        Self {
            log_bytes: 4 << 20,
            pages_bytes: 1 << 20,
            space_bytes: 0,
        }
    }
}

/// Bytes that left memory, and those of allocations that were carried out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Freed {
    pub log_bytes: u64,
    pub pages_bytes: u64,
    pub space_bytes: u64,
}

impl Freed {
    /// What may be sent by now.
    pub fn room(&self, capacity: Capacity, ballast_used_bytes: u64) -> Room {
        let first = first_room(capacity);
        let space_bytes = first.space.0 + self.space_bytes;
        Room {
            log: GrantBytes(first.log.0 + self.log_bytes),
            pages: GrantBytes(first.pages.0 + self.pages_bytes),
            space: GrantBytes(space_bytes.saturating_sub(ballast_used_bytes)),
        }
    }
}

/// What may be sent before the first answer.
pub(super) fn first_room(capacity: Capacity) -> Room {
    Room {
        log: GrantBytes(capacity.log_bytes),
        pages: GrantBytes(capacity.pages_bytes),
        space: GrantBytes(capacity.space_bytes),
    }
}
