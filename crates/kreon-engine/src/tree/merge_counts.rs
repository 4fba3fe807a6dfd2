//! Counters of a merge.

/// Entries added and removed, nodes written and freed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) added: u64,
    pub(super) removed: u64,
    pub(super) freed_leaves: u64,
    pub(super) freed_indexes: u64,
    pub(super) leaves: u64,
    pub(super) indexes: u64,
}

impl Counts {
    pub(super) fn add(&mut self, other: &Self) {
        self.added += other.added;
        self.removed += other.removed;
        self.freed_leaves += other.freed_leaves;
        self.freed_indexes += other.freed_indexes;
        self.leaves += other.leaves;
        self.indexes += other.indexes;
    }
}
