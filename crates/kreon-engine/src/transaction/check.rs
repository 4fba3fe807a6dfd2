//! The condition of a commit: nothing that counts was changed since the transaction's snapshot.
//!
//! What L0' and L0 tell is enough as long as the levels are those from before the snapshot: all in them is older. When
//! they changed, keys and ranges are looked up in the new ones before the gate is closed; whatever came later stands in
//! L0' and L0 again. A load changes what readers see of the same levels when it is shown, so those are counted.

use std::sync::Arc;

use kreon_base::{Error, ErrorKind, Lsn, Result, planted};

use super::handle::Isolation;
use super::reads::Reads;
use super::writes::Writes;
use crate::level::View;
use crate::read::{KeyBounds, LevelsSeen, Reader, changed_in_l0s, newest_in_l0s};
use crate::regions::RegionState;
use crate::visibility::{OpenSnapshot, ReadPoint, Visibility};
use crate::write::{Condition, Judgement};

/// What a commit must find unchanged.
pub struct Unchanged<'a> {
    pub isolation: Isolation,
    pub since: Lsn,
    /// Where its snapshot reads from.
    pub point: ReadPoint<'static>,
    pub reads: &'a Reads,
    pub writes: &'a Writes,
    /// The levels that hold nothing from `since` on, or were looked at.
    pub levels: LevelsSeen,
    /// Loads that were shown from `since` on and looked at.
    pub loads_shown: usize,
    pub visibility: &'a Arc<Visibility>,
}

impl<'a> Unchanged<'a> {
    /// Keys that were written or read, each before it is looked for anywhere.
    fn keys(&self) -> impl Iterator<Item = (&'a RegionState, &'a [u8])> {
        let are_reads_checked = self.isolation == Isolation::Serializable;
        planted!(ReadKeysNotChecked => let are_reads_checked = false);
        let reads = self.reads.keys();
        let reads = reads.filter(move |(_, _, is_for_update)| *is_for_update || are_reads_checked);
        let reads = reads.map(|(region, key, _)| (region, key));
        let are_writes_checked = true;
        planted!(WrittenKeysNotChecked => let are_writes_checked = false);
        let writes = self.writes.keys().filter(move |_| are_writes_checked);
        writes.chain(reads)
    }

    /// Ranges that were deleted or read.
    fn ranges(&self) -> Vec<(&'a RegionState, KeyBounds)> {
        let mut ranges: Vec<_> = self.writes.ranges().collect();
        let are_reads_checked = self.isolation == Isolation::Serializable;
        planted!(ReadRangesNotChecked => let are_reads_checked = false);
        if are_reads_checked {
            let read = self.reads.ranges();
            ranges.extend(read.map(|(region, bounds)| (region, bounds.clone())));
        }
        ranges
    }

    fn loads_shown(&self, view: &View) -> usize {
        let read = self.reads.regions().map(|region| region.id);
        let regions = read.chain(self.writes.regions());
        let shown = regions.map(|region| view.levels.shown_since(region, self.since));
        shown.sum()
    }

    fn look_at_all(&self, reader: &Reader, view: &View) -> Result<()> {
        for (region, key) in self.keys() {
            region.check()?;
            if reader.is_changed(view, region, key, self.since)? {
                return Err(conflict(region, key));
            }
        }
        let ranges = self.ranges();
        if ranges.is_empty() {
            return Ok(());
        }
        // Opened after the view was loaded, so it sees all that is in its levels.
        let now = OpenSnapshot::new(self.visibility);
        for (region, bounds) in &ranges {
            region.check()?;
            let moments = (self.point, now.lsn());
            if let Some(key) = reader.changed_between(view, region, bounds, moments)? {
                return Err(conflict(region, &key));
            }
        }
        Ok(())
    }
}

impl Condition for Unchanged<'_> {
    fn look(&mut self, reader: &Reader) -> Result<()> {
        let view = reader.view();
        let loads_shown = self.loads_shown(&view);
        if self.levels.are_of(&view) && loads_shown == self.loads_shown {
            return Ok(());
        }
        self.look_at_all(reader, &view)?;
        self.levels = LevelsSeen::of(&view);
        self.loads_shown = loads_shown;
        Ok(())
    }

    fn judge(&self, reader: &Reader, view: &View) -> Judgement {
        // Without its region what was read is gone. Those of writes are looked at by the writer.
        if let Some(dropped) = self.reads.regions().find_map(|region| region.check().err()) {
            return Judgement::Broken(dropped);
        }
        // Nobody has written anything since.
        if reader.tail() == self.since {
            return Judgement::Holds;
        }
        if !self.levels.are_of(view) || self.loads_shown(view) != self.loads_shown {
            return Judgement::LookAgain;
        }
        for (region, key) in self.keys() {
            let newest = newest_in_l0s(view, region.id, key);
            if newest.is_some_and(|newest| newest >= self.since) {
                return Judgement::Broken(conflict(region, key));
            }
        }
        for (region, bounds) in self.ranges() {
            if let Some(key) = changed_in_l0s(view, region.id, &bounds, self.since) {
                return Judgement::Broken(conflict(region, &key));
            }
        }
        Judgement::Holds
    }
}

fn conflict(region: &RegionState, key: &[u8]) -> Error {
    const SHOWN_BYTES: usize = 64;
    let shown = key.get(..SHOWN_BYTES).unwrap_or(key).escape_ascii();
    let message = format!(
        "the key \"{shown}\" of the region {:?} was changed since the transaction began",
        region.name
    );
    Error::new(ErrorKind::Conflict, message)
}
