//! The values of a leaf, and where they are.

use std::ops::Bound;

use kreon_base::{Lsn, Result};
use kreon_format::fragment_bytes;
use kreon_mapping::Fetched;

use super::work::Scattered;
use crate::engine::core::Core;
use crate::engine::merge_scan::{self, Step};
use crate::engine::scan_source::{Direction, Located};
use crate::gc::Candidates;
use crate::level::View;
use crate::tree;

/// Longer values are read alone just as well, and their copies cost more.
pub(super) const RECORD_BYTES_MAX: usize = 3 << 10;

/// So many transfers are no reason to move anything: a run of copies may cross the end of a segment.
const TRANSFERS_TOGETHER: usize = 2;

impl Core {
    /// Adds the values of the leaf in which `scattered` lies to `candidates`, in the order of their keys; whether there
    /// are any to be moved. What lies together already stays.
    pub(super) fn add_range(
        &self,
        view: &View,
        scattered: &Scattered,
        candidates: &mut Candidates,
    ) -> Result<bool> {
        let region = scattered.region;
        let nodes = self.nodes(view, region);
        let mut trees = view.levels.of(region).iter().zip(&nodes);
        let Some((tree, lowest)) = trees.next_back() else {
            return Ok(false);
        };
        let mut cursor = tree::Cursor::new(lowest, tree);
        if !cursor.seek(&scattered.key)? {
            return Ok(false);
        }
        let (first, last) = cursor.leaf_ends()?;
        let step = Step {
            region,
            at: Lsn::MAX,
            direction: Direction::Forward,
            start: &Bound::Included(first),
            end: &Bound::Included(last),
            entries_max: usize::MAX,
            bytes_max: usize::MAX,
        };
        let (mut found, mut places) = (Vec::new(), Vec::new());
        merge_scan::run(&step, view, &nodes, |key, located, _| {
            if let Located::Logged {
                offset,
                value_bytes,
            } = located
            {
                let len = fragment_bytes(key.len() + value_bytes as usize);
                if len <= RECORD_BYTES_MAX {
                    places.push((offset.0, len));
                    found.push((key.to_vec(), offset));
                }
            }
        })?;
        places.sort_unstable();
        if Fetched::transfers_of(&places) <= TRANSFERS_TOGETHER {
            return Ok(false);
        }
        for (key, offset) in found {
            candidates.push(region, &key, offset);
        }
        Ok(true)
    }
}
