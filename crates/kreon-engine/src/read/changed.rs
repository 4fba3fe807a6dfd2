//! Whether keys and ranges were changed since a snapshot that is still open.
//!
//! Versions are compared by LSN. The newest version of a key is never dropped, and while a snapshot at S is open, none
//! from S on loses its LSN:
//! - L0' and L0 keep LSNs as they are. A moved record has the LSN of the entry that it replaces, so it is no change.
//! - A spill or merge sets LSNs below all open snapshots to 0 ([`crate::tree`]), and S is one of them: a frozen L0 with
//!   versions from S on was frozen after S was opened, and its spill asks for the snapshots after that.
//! - A deletion may be dropped, with all versions that it hides, where S sees no value. Then the key has no value at S
//!   and none now, which is no change for who read it at S. So with a value that had ended by the time of S.
//! - A load writes LSN 0 into a tree of its own, which is hidden from S if it was shown later.
//!
//! That a value ends is no write, and no change: both looks at a range are as of the time of S.
//!
//! So the newest version has an LSN from S on, or stands in a tree that is hidden from S, if and only if a reader of now
//! sees another version than one at S.

use std::ops::Bound;
use std::sync::Weak;

use kreon_base::{Lsn, RegionId, Result};

use super::Reader;
use super::covering::SeenRanges;
use super::key_bounds::KeyBounds;
use super::merge_scan::{self, Step};
use super::scan_source::Located;
use crate::keys::{L0Key, split};
use crate::level::{Levels, Memory, View};
use crate::regions::RegionState;
use crate::tree;
use crate::visibility::ReadPoint;

/// Pairs that a comparison takes from one moment at a time.
const TAKEN_PAIRS: usize = 256;
const TAKEN_BYTES: usize = 64 << 10;

/// Which levels somebody has looked at. Keeps none of them.
#[derive(Clone)]
pub struct LevelsSeen(Weak<Levels>);

impl LevelsSeen {
    /// Those of `view`.
    pub fn of(view: &View) -> Self {
        Self(std::sync::Arc::downgrade(&view.levels))
    }

    /// Whether `view` has the same.
    pub fn are_of(&self, view: &View) -> bool {
        self.0.as_ptr() == std::sync::Arc::as_ptr(&view.levels)
    }
}

/// The LSN of the newest write of `key` in L0' and L0, be it of a range. With the gate open it may be of a unit that is
/// not wholly there yet.
pub fn newest_in_l0s(view: &View, region: RegionId, key: &[u8]) -> Option<Lsn> {
    let l0_key = L0Key::new(region, key);
    let of = |l0: &Memory| l0.get(l0_key.as_slice(), Lsn::MAX, |_| true, |version| version.lsn);
    let version = view.l0s().filter_map(|l0| of(l0)).max();
    version.max(SeenRanges::of(view).newest(region, key))
}

/// A key of a range, or the start of a deleted range that meets it, which L0' or L0 has with an LSN from `since` on.
/// Goes through all keys that these have in the range.
pub fn changed_in_l0s(
    view: &View,
    region: RegionId,
    bounds: &KeyBounds,
    since: Lsn,
) -> Option<Vec<u8>> {
    let deleted = view.l0s().filter(|l0| l0.has_ranges()).find_map(|l0| {
        let ranges = l0.ranges();
        let met = ranges.of(region)?.newest_within(bounds)?;
        (met.0 >= since).then(|| met.1.to_vec())
    });
    deleted.or_else(|| {
        let older = view.frozen.iter().filter(|frozen| frozen.end > since);
        let mut l0s = std::iter::once(&view.active).chain(older.map(|frozen| &frozen.l0));
        l0s.find_map(|l0| changed_in(l0, region, bounds, since))
    })
}

fn changed_in(l0: &Memory, region: RegionId, bounds: &KeyBounds, since: Lsn) -> Option<Vec<u8>> {
    let (start, end) = bounds;
    let first = match start {
        Bound::Included(key) | Bound::Excluded(key) => key.as_slice(),
        Bound::Unbounded => &[],
    };
    let mut cursor = l0.cursor();
    let mut is_valid = cursor.seek(L0Key::new(region, first).as_slice());
    while is_valid {
        let (of_region, key) = split(cursor.key())?;
        let is_within = of_region == region
            && match end {
                Bound::Included(end) => key <= end.as_slice(),
                Bound::Excluded(end) => key < end.as_slice(),
                Bound::Unbounded => true,
            };
        if !is_within {
            return None;
        }
        let is_start = matches!(start, Bound::Excluded(start) if start == key);
        let newest = cursor.versions().next();
        if !is_start && newest.is_some_and(|version| version.lsn >= since) {
            return Some(key.to_vec());
        }
        is_valid = cursor.next();
    }
    None
}

impl Reader {
    /// Whether `key` was changed since the snapshot at `since`, as far as `view` tells.
    ///
    /// # Errors
    /// Those of a get.
    pub fn is_changed(
        &self,
        view: &View,
        region: &RegionState,
        key: &[u8],
        since: Lsn,
    ) -> Result<bool> {
        if let Some(newest) = newest_in_l0s(view, region.id, key) {
            return Ok(newest >= since);
        }
        for (level, record) in view.levels.seen(region.id, Lsn::MAX) {
            let nodes = self.storage.nodes_for_gets(region.id, level);
            let found = tree::get(&nodes, record, key, Lsn::MAX, |version| version.lsn)?;
            if let Some(lsn) = found {
                let is_hidden = view.levels.hidden_up_to(record) >= since;
                return Ok(is_hidden || (lsn >= since && lsn > Lsn(0)));
            }
        }
        Ok(false)
    }

    /// A key of a range that was changed from the snapshot that reads from `since` to the one at `until`, both open. Reads the index
    /// of the range twice, without values.
    ///
    /// # Errors
    /// Those of a scan.
    pub fn changed_between(
        &self,
        view: &View,
        region: &RegionState,
        bounds: &KeyBounds,
        (since, until): (ReadPoint<'static>, Lsn),
    ) -> Result<Option<Vec<u8>>> {
        let mut then = Walk::new(bounds, since);
        let mut now = Walk::new(bounds, ReadPoint::at(until, since.time()));
        loop {
            let pair = (
                then.next(self, view, region)?,
                now.next(self, view, region)?,
            );
            match pair {
                (None, None) => return Ok(None),
                (Some((key, _)), None) | (None, Some((key, _))) => return Ok(Some(key)),
                (Some((then, _)), Some((now, _))) if then != now => return Ok(Some(then.min(now))),
                (Some((key, then)), Some((_, now))) => {
                    // The record may have been moved between the two looks.
                    if then != now && self.is_changed(view, region, &key, since.lsn)? {
                        return Ok(Some(key));
                    }
                }
            }
        }
    }
}

/// The pairs of a range at a snapshot, without the values that are in the log.
struct Walk {
    rest: Option<KeyBounds>,
    at: ReadPoint<'static>,
    taken: std::vec::IntoIter<(Vec<u8>, Located)>,
}

impl Walk {
    fn new(bounds: &KeyBounds, at: ReadPoint<'static>) -> Self {
        Self {
            rest: Some(bounds.clone()),
            at,
            taken: Vec::new().into_iter(),
        }
    }

    fn next(
        &mut self,
        reader: &Reader,
        view: &View,
        region: &RegionState,
    ) -> Result<Option<(Vec<u8>, Located)>> {
        if let Some(next) = self.taken.next() {
            return Ok(Some(next));
        }
        let Some((start, end)) = self.rest.take() else {
            return Ok(None);
        };
        let step = Step {
            entries_max: TAKEN_PAIRS,
            bytes_max: TAKEN_BYTES,
            ..Step::whole(region.id, self.at, &start, &end)
        };
        let nodes = reader.storage.nodes(view, region.id);
        let mut taken = Vec::new();
        let walked = merge_scan::run(&step, view, &nodes, |key, payload, _| {
            taken.push((key.to_vec(), Located::of(payload, step.at)));
        })?;
        if let Some((last, _)) = taken.last().filter(|_| !walked.is_exhausted) {
            self.rest = Some((Bound::Excluded(last.clone()), end));
        }
        self.taken = taken.into_iter();
        Ok(self.taken.next())
    }
}
