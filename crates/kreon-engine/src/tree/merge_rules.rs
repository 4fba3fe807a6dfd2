//! The rules of a merge.

use kreon_base::{Lsn, Timestamp};

/// Which versions a merge keeps, and how it packs nodes.
#[derive(Clone, Copy, Debug)]
pub struct MergeRules<'a> {
    /// Live snapshots, ascending. A snapshot S sees LSNs below S.
    pub snapshots: &'a [Lsn],
    /// A value that ends by this time has ended for these snapshots and for all later readers: it counts as a deletion. It
    /// stays as it is where that would stay, and becomes one without a record where older versions need it. `None`: all
    /// values stay.
    pub expired_by: Option<Timestamp>,
    /// No tree below holds older versions, so tombstones without older versions in this tree are dropped.
    pub last_level: bool,
    /// Fill goal of leaves and index nodes, as a share of a page, 0 to 1; usually 0.95.
    pub fill: f32,
    /// Rewrite every node, also those without new entries.
    pub rewrites_all: bool,
    /// Filter bits per key for fresh leaves; 0: no filters. Unchanged leaves keep theirs.
    pub filter_bits_per_key: usize,
}
