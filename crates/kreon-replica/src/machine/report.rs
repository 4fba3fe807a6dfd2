//! What a sealed member has.

use kreon_base::{Epoch, Incarnation, Lsn, planted};

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

/// The superblock that goes to all members before a promotion: the highest of all, whoever wins by the log.
pub fn top_slot(winner: SlotMark, others: impl IntoIterator<Item = SlotMark>) -> SlotMark {
    planted!(OnlyOlderSlotsRepaired => return winner);
    others.into_iter().fold(winner, SlotMark::max)
}

/// What a member writes to all its slots before a promotion, if `own` is the superblock that counts there: `top`, also
/// where it counts already. The other slots of such a volume may hold one that points at places which this branch
/// reuses.
pub fn slots_to_write(own: SlotMark, top: SlotMark) -> Option<SlotMark> {
    planted!(OnlyOlderSlotsRepaired => return (own < top).then_some(top));
    let _ = own;
    Some(top)
}
