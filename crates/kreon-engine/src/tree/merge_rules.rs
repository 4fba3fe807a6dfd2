//! The rules of a merge.

use kreon_base::Lsn;

/// What a merge keeps, and how it packs.
#[derive(Clone, Copy, Debug)]
pub struct MergeRules<'a> {
    /// Live snapshots, ascending. A snapshot S sees LSNs below S.
    pub snapshots: &'a [Lsn],
    /// No older version of any key is below this tree: deletions need not stay.
    pub last_level: bool,
    /// How full leaves and index nodes get, as a share of a page, 0 to 1; 0.95 serves.
    pub fill: f32,
    /// Every node is taken apart, also those that no entry belongs to.
    pub rewrites_all: bool,
    /// Bits a key of the filters of fresh leaves; 0: none. Leaves that stay keep what they have.
    pub filter_bits_per_key: usize,
}
