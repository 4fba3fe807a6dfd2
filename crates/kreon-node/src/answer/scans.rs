//! Pages of scans.

use std::ops::Bound;
use std::sync::Arc;

use kreon_base::Result;
use kreon_engine::{OpenSnapshot, RegionState};
use kreon_wire::{FailureKind, PageBody, ScanPart, SnapshotId};

use super::asked::Asked;
use super::reads::met_in;

/// A page has at most so many bytes, whatever the client would take.
const PAGE_BYTES_MAX: u32 = 1 << 20;

/// So many entries are read at once.
const STEP_ENTRIES_MAX: u32 = 1024;

/// How a page ended.
struct Filled {
    body: PageBody,
    is_last: bool,
}

impl Asked {
    pub fn scan(self, part: &ScanPart<'_>) {
        if !self.office.holds().has_all(part.table, &part.bounds) {
            return self.misplaced();
        }
        let Some((asked, snapshot)) = self.at(part.snapshot) else {
            return;
        };
        let snapshot = snapshot.unwrap_or_else(|| asked.office.engine.snapshot());
        match asked.fill(part, &snapshot) {
            Ok(filled) => asked.finish(part.snapshot, &snapshot, filled),
            Err(error) => asked.fail(&error),
        }
    }

    /// Collects entries from where the scan stands.
    fn fill(&self, part: &ScanPart<'_>, snapshot: &Arc<OpenSnapshot>) -> Result<Filled> {
        let mut filled = Filled {
            body: PageBody::new(),
            is_last: true,
        };
        let Some(region) = self.office.existing(part.table)? else {
            return Ok(filled);
        };
        let mut scan = self.scan_of(&region, part, snapshot);
        let bytes_max = part.bytes_max.min(PAGE_BYTES_MAX) as usize;
        while filled.body.len() < part.entries_max as usize
            && (filled.body.is_empty() || filled.body.data_bytes() < bytes_max)
        {
            let push = |key: &[u8], value: &[u8]| filled.body.push(key, value).is_err();
            let is_refused = match part.is_reverse {
                true => scan.next_back_with(push)?,
                false => scan.next_with(push)?,
            };
            match is_refused {
                Some(false) => {}
                // It is the first one of the next page.
                Some(true) => break,
                None => return Ok(filled),
            }
        }
        // Full: whether something follows shows the next page.
        filled.is_last = false;
        Ok(filled)
    }

    fn scan_of(
        &self,
        region: &Arc<RegionState>,
        part: &ScanPart<'_>,
        snapshot: &Arc<OpenSnapshot>,
    ) -> kreon_engine::Scan {
        let own = |bound: Bound<&[u8]>| bound.map(<[u8]>::to_vec);
        let bounds = (own(part.bounds.start), own(part.bounds.end));
        let engine = &self.office.engine;
        let mut scan = engine.scan(region, Arc::clone(snapshot), bounds);
        if part.keys_only {
            scan.without_values();
        }
        // More are read in steps that grow, as the bytes of a page may be its end.
        if part.entries_max <= STEP_ENTRIES_MAX {
            scan.limit(part.entries_max as usize);
        }
        scan
    }

    fn finish(self, named: SnapshotId, snapshot: &Arc<OpenSnapshot>, filled: Filled) {
        let client = Arc::clone(self.due.client());
        let snapshots = &self.hosted.snapshots;
        let is_named = named != SnapshotId(0);
        let next = match filled.is_last {
            true if is_named => {
                let of_office = (self.office.term, named);
                if snapshots
                    .get(&client, of_office)
                    .is_some_and(|found| found.1)
                {
                    snapshots.release(&client, named);
                }
                Some(SnapshotId(0))
            }
            true => Some(SnapshotId(0)),
            false if is_named => Some(named),
            false => snapshots.keep(&client, (self.office.term, snapshot), true),
        };
        match next {
            Some(next) => {
                let body = filled.body.finish(next);
                let met = met_in(snapshot);
                self.hosted.await_read(&self.office, met, self.due, body);
            }
            None => self.refuse(FailureKind::Busy, "the client has too many scans open"),
        }
    }
}
