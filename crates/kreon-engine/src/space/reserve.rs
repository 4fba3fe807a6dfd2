//! The reserve: space that stays free so that the next spill and the merges beside it do not fail.

use kreon_base::PAGE_BYTES;
use kreon_volume::{L0sReserve, Reserve};

use super::Space;

/// L0' is taken to grow by this from one look at the space to the next, which comes with each 256 KiB of the log.
const L0_AHEAD_BYTES: usize = 2 << 20;

/// Records of so many bytes may be in the log and not in L0' yet.
const IN_FLIGHT_BYTES: u64 = 16 << 10;

impl Space {
    /// Keeps as much space in reserve as the next spill and the merges beside it may need: every node of regions with
    /// several trees written anew, once, of others as many as L0s have entries for, and the leaves that L0s add.
    pub fn set_reserve(&self) {
        self.set_reserve_but(0);
    }

    /// What a spill of the L0s may need, including their growth until the log asks for more room.
    pub fn l0s_reserve(&self) -> L0sReserve {
        let view = self.storage.views.load();
        let since_freeze = self.snapshot.active_bytes(self.storage.log.tail());
        let in_flight = since_freeze.min(IN_FLIGHT_BYTES);
        L0sReserve {
            entries: view.l0s().map(|l0| l0.len() as u64).sum(),
            pages: view.l0s().map(|l0| (l0.bytes() / PAGE_BYTES) as u64).sum(),
            granted_bytes: self.storage.log.granted_bytes() + in_flight,
        }
    }

    /// How much L0' may grow until the reserve is computed again.
    pub fn l0_ahead_bytes(&self) -> usize {
        (self.storage.split.l0_bytes / 8)
            .max(L0_AHEAD_BYTES)
            .min(self.storage.split.l0_bytes)
    }

    /// The same; so many pages of it will be free as soon as no reader reaches them.
    pub fn set_reserve_but(&self, soon_free: u64) {
        let view = self.storage.views.load();
        let sums = view.levels.sums();
        let reserve = Reserve {
            spilled_pages: sums.pages - sums.merged_pages,
            merged_pages: sums.merged_pages,
            soon_free_pages: soon_free,
            l0s: self.l0s_reserve(),
        };
        self.storage.allocator.lock().set_reserve(reserve);
    }
}
