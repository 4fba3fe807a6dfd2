//! Deleted ranges for readers: the deletions that cover a key, and stretches of dead keys that a scan skips.

use std::cell::Cell;
use std::sync::Arc;

use arc_swap::Guard;
use kreon_base::{Lsn, RegionId};

use crate::level::View;
use crate::ranges::{Deletion, Ranges, RegionRanges, Stretch};
use crate::visibility::BatchVisibility;

/// The deleted ranges of L0' and L0, as they are at one moment. Neither is loaded if it has none.
pub struct SeenRanges {
    active: Option<Guard<Arc<Ranges>>>,
    frozen: Option<Guard<Arc<Ranges>>>,
}

impl SeenRanges {
    /// Those of `view`.
    pub fn of(view: &View) -> Self {
        let frozen = view.frozen.as_ref().map(|frozen| &frozen.l0);
        let active = &view.active;
        Self {
            active: active.has_ranges().then(|| active.ranges()),
            frozen: frozen.filter(|l0| l0.has_ranges()).map(|l0| l0.ranges()),
        }
    }

    /// The LSN of the newest deletion that covers a key, of units that are not wholly there, too.
    pub fn newest(&self, region: RegionId, key: &[u8]) -> Option<Lsn> {
        let all = self.active.iter().chain(&self.frozen);
        let of_region = all.filter_map(|ranges| ranges.of(region));
        let newest = of_region.filter_map(|ranges| ranges.covering(key).first());
        newest.map(|deletion| deletion.lsn).max()
    }

    /// The deletions that cover a key, for a get at `at` that sees what `sight` says.
    pub fn covering<'a>(
        &'a self,
        region: RegionId,
        key: &[u8],
        at: Lsn,
        sight: &'a BatchVisibility<'a>,
    ) -> Covering<'a> {
        let of = |ranges: &'a Option<Guard<Arc<Ranges>>>| -> &'a [Deletion] {
            let ranges = ranges.as_ref().and_then(|ranges| ranges.of(region));
            ranges.map_or(&[], |ranges| ranges.covering(key))
        };
        Covering {
            newer: of(&self.active),
            older: of(&self.frozen),
            at,
            sight,
            next: Cell::new(0),
        }
    }
}

/// The deletions that cover one key, as a get goes through its versions, from the newest to the oldest.
pub struct Covering<'a> {
    /// Of L0'.
    newer: &'a [Deletion],
    /// Of L0.
    older: &'a [Deletion],
    at: Lsn,
    sight: &'a BatchVisibility<'a>,
    /// The next one to look at. Stays at the first that is seen.
    next: Cell<usize>,
}

impl Covering<'_> {
    /// Whether the get sees a deletion of the key that is newer than `lsn`. To be asked from the newest to the
    /// oldest, before the version at `lsn` is: units are judged in that order.
    pub fn deletes(&self, lsn: Lsn) -> bool {
        loop {
            let next = self.next.get();
            let behind = next.wrapping_sub(self.newer.len());
            let deletion = self.newer.get(next).or_else(|| self.older.get(behind));
            let Some(deletion) = deletion.filter(|deletion| deletion.lsn > lsn) else {
                return false;
            };
            let is_before = deletion.lsn < self.at;
            if is_before && (!deletion.pending || self.sight.sees(deletion.lsn)) {
                return true;
            }
            self.next.set(next + 1);
        }
    }

    /// The position of the deletion that [`deletes`](Self::deletes) has found.
    pub fn deletion(&self) -> Option<Lsn> {
        let next = self.next.get();
        let behind = next.wrapping_sub(self.newer.len());
        let deletion = self.newer.get(next).or_else(|| self.older.get(behind))?;
        Some(deletion.lsn)
    }
}

/// The deleted ranges of a region, for a scan at a snapshot: all units before it are settled.
pub struct DeadKeys {
    sets: Vec<Arc<RegionRanges>>,
    at: Lsn,
    /// Around the last key that was asked for.
    here: Option<Stretch>,
}

impl DeadKeys {
    /// Those of `view`.
    pub fn of(view: &View, region: RegionId, at: Lsn) -> Self {
        let ranges = SeenRanges::of(view);
        let sets = [ranges.active, ranges.frozen].into_iter().flatten();
        Self {
            sets: sets.filter_map(|set| set.of(region).cloned()).collect(),
            at,
            here: None,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    /// The position of the newest deletion that covers `key`: all versions before it are dead.
    pub fn newest(&mut self, key: &[u8]) -> Option<Lsn> {
        if self.is_empty() {
            return None;
        }
        self.around(key).deleted
    }

    /// The keys around `key` of which the same is known.
    pub fn around(&mut self, key: &[u8]) -> &Stretch {
        let (sets, at) = (&self.sets, self.at);
        let here = self.here.take().filter(|here| here.has(key));
        self.here.insert(here.unwrap_or_else(|| {
            let stretches = sets.iter().map(|set| set.stretch(key, at));
            stretches.reduce(Stretch::meet).unwrap_or_default()
        }))
    }
}
