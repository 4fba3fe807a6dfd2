//! What a sealed member has.

use kreon_base::{Epoch, Incarnation, Lsn};

/// Which superblock counts in a volume. The higher one is the later state: incarnations are terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SlotMark {
    /// The opening that wrote it.
    pub incarnation: Incarnation,
    /// Its checkpoint.
    pub epoch: Epoch,
}

/// What a sealed member has, durable. The highest report wins a promotion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Report {
    /// Its superblock.
    pub slot: SlotMark,
    /// End of its last whole unit of the log.
    pub log_end: Lsn,
}
