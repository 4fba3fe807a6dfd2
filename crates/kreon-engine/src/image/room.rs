//! Memory for what an opening puts into L0.

use std::sync::atomic::{AtomicU64, Ordering};

use kreon_l0::L0;

/// What an entry takes in L0 beyond its key and its inline value, at the most.
pub const ENTRY_BYTES_MAX: usize = 64;

/// How large L0 may become while an opening fills it. An opening for writing has no limit: it spills afterwards. One for
/// reading cannot. Beyond the limit entries are left out and counted, so that the error can tell what they would take.
pub struct Room {
    limit_bytes: usize,
    left_out_bytes: AtomicU64,
}

impl Room {
    /// Up to `limit_bytes`.
    pub fn new(limit_bytes: usize) -> Self {
        Self {
            limit_bytes,
            left_out_bytes: AtomicU64::new(0),
        }
    }

    /// As much as it takes.
    pub fn unlimited() -> Self {
        Self::new(usize::MAX)
    }

    /// Nothing was left out: L0 is filled anew.
    pub fn begin_anew(&mut self) {
        *self.left_out_bytes.get_mut() = 0;
    }

    /// Whether an entry may go into `l0`; if not, it counts as left out. `bytes` are those of its key and inline value.
    #[inline]
    pub fn admits(&self, l0: &L0, bytes: usize) -> bool {
        let is_room = self.limit_bytes == usize::MAX || l0.bytes() < self.limit_bytes;
        if !is_room {
            let bytes = bytes + ENTRY_BYTES_MAX;
            self.left_out_bytes
                .fetch_add(bytes as u64, Ordering::Relaxed);
        }
        is_room
    }

    /// What the entries that were left out would take, at the most; 0: there are none.
    pub fn left_out_bytes(&self) -> u64 {
        self.left_out_bytes.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use kreon_base::{LogOffset, Lsn, Payload};
    use kreon_l0::Keep;

    use super::*;

    #[test]
    fn what_has_no_room_is_counted() {
        let l0 = L0::new();
        let payload = Payload::Tombstone {
            offset: LogOffset(8),
        };
        l0.insert(b"key", Lsn(1), payload, Keep::default());
        let (none, some) = (Room::new(1), Room::unlimited());
        assert!(some.admits(&l0, 10) && some.left_out_bytes() == 0);
        assert!(!none.admits(&l0, 10) && !none.admits(&l0, 20));
        assert_eq!(none.left_out_bytes(), 30 + 2 * ENTRY_BYTES_MAX as u64);
    }
}
