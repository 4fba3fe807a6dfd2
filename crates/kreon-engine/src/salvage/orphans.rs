//! Orphans: leaves without a readable index node above them.

use std::ops::Bound;

use kreon_base::{RegionId, Result};
use kreon_format::{Leaf, check_node, claimed_node};

use super::found::FoundLeaf;
use super::target::Target;
use super::trees::LeafTaker;

/// Takes `leaves` in the given order, oldest first. Some of them may be obsolete if they `may_overlap`: a newer leaf then
/// deletes the keys of older ones within its bounds.
///
/// # Errors
/// Those of the target.
pub fn take(taker: &mut LeafTaker<'_, '_>, leaves: &[FoundLeaf], may_overlap: bool) -> Result<()> {
    let mut region = None;
    let at = taker.at;
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
        if may_overlap || region != Some(leaf.region()) {
            taker.forget();
        }
        region = Some(leaf.region());
        if may_overlap {
            clear(taker.target, leaf.region(), &leaf)?;
        }
        taker.take(&leaf, false)?;
    }
    Ok(())
}

fn clear(target: &mut Target<'_>, region: RegionId, leaf: &Leaf<'_>) -> Result<()> {
    let (mut first, mut last) = (Vec::new(), Vec::new());
    leaf.key_into(0, &mut first)?;
    leaf.key_into(leaf.len().saturating_sub(1), &mut last)?;
    target.clear(region, (Bound::Included(&first), Bound::Included(&last)))
}
