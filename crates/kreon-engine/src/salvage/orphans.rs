//! Orphans: leaves without a readable index node above them.

use std::ops::Bound;

use kreon_base::{Lsn, RegionId, Result};
use kreon_format::{Leaf, check_node, claimed_node};

use super::found::FoundLeaf;
use super::log_walk::LogAt;
use super::target::Target;
use super::trees::LeafTaker;

/// Result of [`take`].
pub struct Taken {
    pub entries: u64,
    /// As [`LeafTaker::spilled`].
    pub spilled: Lsn,
}

/// The relation of leaves to each other and to other trees.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// Some leaves may be obsolete. A newer leaf then deletes the keys of older ones within its bounds.
    pub may_overlap: bool,
    /// Lower trees of the region were taken before.
    pub is_above: bool,
}

/// Takes `leaves` in the given order, oldest first.
///
/// # Errors
/// Those of the target.
pub fn take(
    at: LogAt<'_>,
    target: &mut Target<'_>,
    leaves: &[FoundLeaf],
    order: Order,
) -> Result<Taken> {
    let mut taker = LeafTaker::new(at, target, order.is_above);
    let mut region = None;
    let pages = at.source.with_pages(leaves, |leaf| leaf.page);
    for page in pages.filter_map(|(_, page)| page) {
        // Skips a page that no longer verifies; it did when it was found.
        let Some(claim) = claimed_node(&page) else {
            continue;
        };
        if claim.level > 0 || check_node(&page, at.store, &claim.pointer, 0).is_err() {
            continue;
        }
        let leaf = Leaf::open(&page)?;
        if order.may_overlap || region != Some(leaf.region()) {
            taker.forget();
        }
        region = Some(leaf.region());
        if order.may_overlap {
            clear(taker.target, leaf.region(), &leaf)?;
        }
        taker.take(&leaf, false)?;
    }
    Ok(Taken {
        entries: taker.entries,
        spilled: taker.spilled,
    })
}

fn clear(target: &mut Target<'_>, region: RegionId, leaf: &Leaf<'_>) -> Result<()> {
    let (mut first, mut last) = (Vec::new(), Vec::new());
    leaf.key_into(0, &mut first)?;
    leaf.key_into(leaf.len().saturating_sub(1), &mut last)?;
    target.clear(region, (Bound::Included(&first), Bound::Included(&last)))
}
