//! Leaves that no whole index node leads to.

use kreon_base::{Lsn, RegionId, Result};
use kreon_format::{Leaf, check_node, claimed_node};

use super::found::FoundLeaf;
use super::records::Records;
use super::source::ROUND_PAGES_MAX;
use super::target::Target;
use super::trees::LeafTaker;

/// What taking orphans gave.
pub struct Taken {
    pub entries: u64,
    /// See [`LeafTaker::spilled`].
    pub spilled: Lsn,
}

/// What is known of leaves.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// Old leaves may be among them; what a newer one covers and does not hold is not there any more.
    pub may_overlap: bool,
    /// Trees beneath theirs were taken before.
    pub is_above: bool,
}

/// Takes `leaves`, older ones first.
///
/// # Errors
/// Those of the target.
pub fn take(
    records: Records<'_>,
    target: &mut Target<'_>,
    leaves: &[FoundLeaf],
    order: Order,
) -> Result<Taken> {
    let Order {
        may_overlap,
        is_above,
    } = order;
    let (source, store) = (records.source, records.store);
    let mut taker = LeafTaker::new(records, target);
    taker.is_above = is_above;
    let mut region = None;
    for round in leaves.chunks(ROUND_PAGES_MAX) {
        let pages: Vec<_> = round.iter().map(|leaf| leaf.page).collect();
        for page in source.pages(&pages).into_iter().flatten() {
            // It was whole when it was found.
            let Some(claim) = claimed_node(&page) else {
                continue;
            };
            if claim.level > 0 || check_node(&page, store, &claim.pointer, 0).is_err() {
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
    target.clear(region, &first, &last)
}
