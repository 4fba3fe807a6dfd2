//! Applies the deleted ranges of a frozen L0 to all trees below the first. So trees hold no range tombstones, only
//! `Erased` entries of single keys above versions that a snapshot sees.

use std::sync::Arc;

use kreon_base::{RegionId, Result};
use kreon_format::TreeRecord;

use super::run::{Changed, RegionSpill};
use crate::level::{Levels, MappedNodes};
use crate::ranges::RegionRanges;
use crate::tree::{self, Cursor, Entry, EntryStream, MergeRules};

/// A merge input of deleted ranges without entries.
pub struct Erasing(pub Arc<RegionRanges>);

impl EntryStream for Erasing {
    fn next(&mut self) -> Result<Option<Entry<'_>>> {
        Ok(None)
    }

    fn ranges(&self) -> Option<Arc<RegionRanges>> {
        Some(Arc::clone(&self.0))
    }
}

impl<'a> RegionSpill<'a> {
    /// Applies the deleted ranges to `trees`, those below the first.
    pub(super) fn erase(&self, trees: &mut [TreeRecord], changed: &mut Changed<'a>) -> Result<()> {
        let Some(ranges) = &self.ranges else {
            return Ok(());
        };
        let lowest = trees.len();
        for (level, tree) in (2..).zip(trees) {
            let source = self.source(level);
            if !has_any(&source, tree, ranges)? {
                continue;
            }
            let rules = MergeRules {
                last_level: usize::from(level) - 1 == lowest,
                ..self.rules
            };
            let mut sink = self.sink(&mut changed.pages, level);
            let notes = &mut changed.notes;
            let mut input = Erasing(Arc::clone(ranges));
            *tree = tree::merge(&source, &mut sink, tree, &mut input, &rules, notes)?;
        }
        Ok(())
    }
}

/// Whether `tree` has a key in `ranges`. If not, the tree is unchanged, and a merge in progress on it stays valid.
fn has_any(source: &MappedNodes<'_>, tree: &TreeRecord, ranges: &RegionRanges) -> Result<bool> {
    let mut cursor = Cursor::new(source, tree);
    for (start, end) in ranges.bounds() {
        if !cursor.seek(start)? {
            return Ok(false);
        }
        if end.is_none_or(|end| cursor.key() < end) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Replaces the trees of `region` one for one; each keeps its visible-from position.
pub(super) fn replace(levels: &mut Levels, region: RegionId, trees: Vec<TreeRecord>) {
    let old = levels.of(region).iter();
    let hidden_trees: Vec<_> = old.map(|tree| levels.visible_from(tree)).collect();
    let hidden: Vec<_> = trees.iter().copied().zip(hidden_trees).collect();
    levels.set(region, trees);
    for (tree, visible_from) in hidden {
        if let Some(visible_from) = visible_from {
            levels.hide(&tree, visible_from);
        }
    }
}
