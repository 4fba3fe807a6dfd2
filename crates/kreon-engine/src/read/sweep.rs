//! A look at the keys around a deletion, so that the first scan over many deleted keys finds a gap.
//!
//! It is made by the thread that deletes, at each 64th deletion, over what is in memory alone: a deletion never waits
//! for the device because of a scan that may come.

use std::ops::Bound;
use std::sync::Arc;

use kreon_base::{Lsn, Result};

use super::Reader;
use super::merge_scan::{self, Step, Walked};
use crate::keys::Direction;
use crate::operation::Operation;
use crate::regions::RegionState;
use crate::regions::gaps::DeadRun;
use crate::visibility::Moment;
use crate::visibility::OpenSnapshot;

/// Most dead entries that are passed on each side: what is behind was looked at, or waits for a scan.
const SWEEP_ENTRIES_MAX: u64 = 1024;

impl Reader {
    /// Notes the dead keys around `key`, as far as it is known without the device.
    pub fn sweep_around(self: &Arc<Self>, region: &RegionState, key: &[u8]) {
        let snapshot = OpenSnapshot::new(&self.visibility);
        let view = self.storage.views.load_full();
        let mut nodes = self.storage.nodes(&view, region.id);
        nodes
            .iter_mut()
            .for_each(|nodes| nodes.resident_only = true);
        for direction in [Direction::Backward, Direction::Forward] {
            let known = region.gaps.known();
            let step = Step {
                region: region.id,
                at: snapshot.point(),
                direction,
                start: &Bound::Included(key.to_vec()),
                end: &Bound::Unbounded,
                entries_max: 1,
                bytes_max: usize::MAX,
                dead_max: SWEEP_ENTRIES_MAX,
                gaps: known.as_ref().map_or(&[], |known| known.gaps()),
                visibility: Some(&self.visibility),
            };
            let walked = merge_scan::run(&step, &view, &nodes, |_, _, _| {});
            // Where a node is not in memory nothing is noted.
            if let Ok(Walked { run: Some(run), .. }) = walked {
                self.note_run(region, &run, snapshot.moment(), &BOTH);
            }
        }
    }

    /// Makes a gap of a long run of dead entries, or has it watched.
    pub fn note_run(
        &self,
        region: &RegionState,
        run: &DeadRun,
        moment: Moment,
        ways: &[Direction],
    ) {
        let around = (&self.visibility.gate, &self.visibility.snapshots);
        region.gaps.note_run(run, moment, ways, around);
    }

    /// Before `operations` are written: if they delete one range, it is watched.
    pub fn watch_range(&self, operations: &[Operation<'_>]) -> Result<Option<u64>> {
        let [operation] = operations else {
            return Ok(None);
        };
        if !operation.is_range {
            return Ok(None);
        }
        let (start, end) = operation.range()?;
        Ok(operation
            .region
            .gaps
            .watch_range(start, end, &self.visibility.gate))
    }

    /// After `operations` were written, up to `end`: what they deleted may be a gap.
    pub fn note_deletions(
        self: &Arc<Self>,
        operations: &[Operation<'_>],
        watch: Option<u64>,
        end: Lsn,
    ) {
        if let (Some(mark), [operation]) = (watch, operations) {
            let gaps = &operation.region.gaps;
            return gaps.note_deleted_range(mark, end, &self.visibility.snapshots);
        }
        let mut due = None;
        for operation in operations.iter().filter(|it| it.value.is_none()) {
            if operation.region.gaps.note_deletion() {
                due = Some(operation);
            }
        }
        if let Some(last) = due {
            self.sweep_around(last.region, last.key);
        }
    }
}

const BOTH: [Direction; 2] = [Direction::Forward, Direction::Backward];
