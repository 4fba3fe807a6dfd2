//! The spill of a whole L0.

use std::collections::BTreeMap;

use kreon_base::{Bug, Lsn, PageNo, RegionId, Result, SegmentId};
use kreon_format::TreeRecord;

use super::charges::Charges;
use super::sink::FreshNodes;
use super::stream::{RegionStream, regions_of};
use crate::level::{Frozen, Levels, MappedNodes};
use crate::state::Parts;
use crate::tree::{self, Changes, MergeRules, Reference};
use crate::volume::PageRuns;

/// How full leaves are packed. Splitting alone would leave them 0.7 full; packed, a spill writes about
/// 30 % fewer leaf bytes.
pub const LEAF_FILL: f32 = 0.95;

/// What a spill changed. Nothing of it is durable or visible yet.
pub struct Spilled {
    /// The new levels.
    pub levels: Levels,
    /// Fresh pages, all written to the mapping.
    pub kept: Vec<PageNo>,
    /// Pages of the old levels that the new ones do not reach.
    pub dropped: Vec<PageNo>,
    /// Change of live bytes by log segment.
    pub charges: BTreeMap<SegmentId, i64>,
}

/// Spills `frozen` into L1 of `levels`. Entries of regions that no longer `exist` are left behind.
/// `snapshots` are the open ones, ascending: the versions that they see are kept.
///
/// # Errors
/// `OutOfSpace`, `Corruption`, `Io`: all fresh pages are given back.
pub fn spill(
    parts: &Parts,
    frozen: &Frozen,
    levels: &Levels,
    exists: &dyn Fn(RegionId) -> bool,
    snapshots: &[Lsn],
) -> Result<Spilled> {
    let epoch = parts.ledger.lock().epoch.next();
    let mut pages = PageRuns::new(&parts.allocator, &parts.mapping);
    let mut changed = Changed {
        parts,
        charges: Charges::new(&parts.log),
        dropped: Vec::new(),
    };
    let mut levels = levels.clone();
    for region in regions_of(frozen.l0.cursor()) {
        if !exists(region) {
            continue;
        }
        let mut trees = levels.of(region).to_vec();
        if trees.is_empty() {
            trees.push(TreeRecord::default());
        }
        let rules = MergeRules {
            snapshots,
            last_level: trees.len() == 1,
            fill: LEAF_FILL,
        };
        if let Some(first) = trees.first_mut() {
            let source = MappedNodes {
                mapping: &parts.mapping,
                log: &parts.log,
                store: parts.store,
                region,
                level: 1,
            };
            let mut sink = FreshNodes {
                mapping: &parts.mapping,
                pages: &mut pages,
                store: parts.store,
                epoch,
                region,
                level: 1,
            };
            let mut input = RegionStream::new(frozen.l0.cursor(), region);
            *first = tree::merge(&source, &mut sink, first, &mut input, &rules, &mut changed)?;
        }
        levels.set(region, trees);
    }
    let (dropped, charges) = (changed.dropped, changed.charges.finish());
    Ok(Spilled {
        levels,
        kept: pages.finish()?,
        dropped,
        charges,
    })
}

/// Collects what the merges report.
struct Changed<'a> {
    parts: &'a Parts,
    charges: Charges<'a>,
    dropped: Vec<PageNo>,
}

impl Changes for Changed<'_> {
    fn freed(&mut self, page: PageNo) {
        if Bug::PagesReusedTooEarly.is_planted() {
            let _ = self.parts.allocator.lock().release_pages(&[page]);
        }
        self.dropped.push(page);
    }

    fn referenced(&mut self, record: Reference) {
        self.charges.add(&record);
    }

    fn dropped(&mut self, record: Reference) {
        self.charges.drop(&record);
    }
}
