//! Credits leaves with the excess reads of a step of a scan.

use kreon_format::TreeRecord;
use kreon_mapping::Fetched;

use super::Reader;
use super::batch::{Batch, Pair};
use super::leaves::Leaves;
use super::scattered::Scattered;
use crate::level::View;
use crate::regions::RegionState;

/// To lay the values of a leaf together costs a read for each that is not in memory, and one write of all: about as
/// much as scans have paid by the time when they have read this share of its entries one by one.
const SHARE_PAID: f64 = 1.0;

/// The least that is worth it.
const PAID_MIN: u64 = 8;

/// The credit with which the values of a leaf of `tree` are laid together.
pub fn enough(tree: &TreeRecord) -> u64 {
    let entries = tree.entries as f64 / tree.leaf_pages.max(1) as f64;
    ((entries * SHARE_PAID) as u64).max(PAID_MIN)
}

impl Reader {
    /// Credits the leaves of a step with the reads that it would not have needed, and asks for those whose values are
    /// to be laid together.
    pub fn charge_scan(
        &self,
        view: &View,
        region: &RegionState,
        batch: &Batch,
        leaves: &Leaves,
        fetched: &Fetched,
        is_long: bool,
    ) {
        // One read for each leaf, or for each border between runs, is as good as it gets.
        if fetched.transfers() <= 2 * leaves.len() || !self.storage.options.scan_reorganisation {
            return;
        }
        if !is_long && self.hand_over(region, batch, fetched) {
            return;
        }
        let Some(tree) = view.levels.of(region.id).last() else {
            return;
        };
        let enough = enough(tree);
        let mut records = Vec::new();
        for (leaf, span) in leaves.spans(batch.len()) {
            records.clear();
            let pairs = span.clone().filter_map(|at| batch.nth(at));
            let logged = pairs.filter_map(Pair::record);
            let read = logged.filter(|(offset, _)| fetched.was_read(offset.0));
            records.extend(read.map(|(offset, len)| (offset.0, len)));
            records.sort_unstable();
            let excess = Fetched::transfers_of(&records).saturating_sub(1) as u64;
            let credits = &self.scattered.credits;
            if excess > 0
                && credits.add(region.id, leaf, excess, enough)
                && let Some(pair) = batch.nth(span.start)
            {
                self.scattered.ask(Scattered {
                    region: region.id,
                    key: batch.key(pair).to_vec(),
                });
            }
        }
    }
}
