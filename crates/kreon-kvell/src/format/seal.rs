//! The checksums of items.

use kreon_base::Checksum;
use kreon_format::StoreId;

use super::Timestamp;
use super::geometry::Slot;

/// What seeds the checksums of the items of a store, besides the offset of each, and the hashes of its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemSeal {
    /// The store.
    pub store: StoreId,
}

impl ItemSeal {
    /// Checksum of a head part, of its bytes behind the checksum.
    pub(super) fn head_checksum(self, slot: Slot, head: &[u8]) -> u32 {
        let words = [self.store.0, slot.offset];
        let seed = words.map(u64::to_le_bytes);
        Checksum::new()
            .with(seed.as_flattened())
            .with(head)
            .finish()
    }

    /// Checksum of a body. The timestamp is part of the seed, so that a body never passes for that of another write.
    pub(super) fn body_checksum(self, slot: Slot, timestamp: Timestamp, body: &[u8]) -> u32 {
        let words = [self.store.0, slot.offset, timestamp.0];
        let seed = words.map(u64::to_le_bytes);
        Checksum::new()
            .with(seed.as_flattened())
            .with(body)
            .finish()
    }
}
