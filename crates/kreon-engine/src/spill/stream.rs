//! The entries of one region of a frozen L0, in the order of a merge.

use std::sync::Arc;

use kreon_base::{RegionId, Result};
use kreon_l0::{Cursor, Version, Versions};

use super::progress::Progress;
use crate::keys::{L0Key, split};
use crate::ranges::RegionRanges;
use crate::tree::{Entry, EntryStream};

/// Keys per progress update; small enough for smooth pacing.
const PROGRESS_KEYS: u64 = 128;

/// The entries of one region of a frozen L0.
pub struct RegionStream<'a> {
    cursor: Cursor<'a>,
    region: RegionId,
    /// End of the keys, exclusive.
    end: Option<Vec<u8>>,
    key: &'a [u8],
    versions: Option<Versions<'a>>,
    ranges: Option<Arc<RegionRanges>>,
    progress: &'a Progress,
    /// Keys not yet reported to `progress`.
    taken: u64,
}

impl<'a> RegionStream<'a> {
    /// The entries of `region` with keys from `first` up to, not including, `end`, and the deleted `ranges`. Reports
    /// finished keys to `progress`.
    pub fn new(
        mut cursor: Cursor<'a>,
        region: RegionId,
        (first, end): (Option<&[u8]>, Option<&[u8]>),
        ranges: Option<Arc<RegionRanges>>,
        progress: &'a Progress,
    ) -> Self {
        cursor.seek(L0Key::new(region, first.unwrap_or_default()).as_slice());
        let mut stream = Self {
            cursor,
            region,
            end: end.map(<[u8]>::to_vec),
            key: b"",
            versions: None,
            ranges,
            progress,
            taken: 0,
        };
        stream.stand();
        stream
    }

    fn stand(&mut self) {
        let here = split(self.cursor.key()).filter(|(region, _)| *region == self.region);
        let within = |key: &[u8]| self.end.as_ref().is_none_or(|end| key < end.as_slice());
        let here = here.filter(|(_, key)| self.cursor.is_valid() && within(key));
        self.versions = here.map(|(_, key)| {
            self.key = key;
            self.cursor.versions()
        });
    }

    fn next_version(&mut self) -> Option<Version<'a>> {
        while let Some(versions) = &mut self.versions {
            if let Some(version) = versions.next() {
                return Some(version);
            }
            self.taken += 1;
            if self.taken == PROGRESS_KEYS {
                self.progress.add(std::mem::take(&mut self.taken));
            }
            self.cursor.next();
            self.stand();
        }
        None
    }
}

impl EntryStream for RegionStream<'_> {
    fn next(&mut self) -> Result<Option<Entry<'_>>> {
        let version = self.next_version();
        let key = self.key;
        Ok(version.map(|version| Entry {
            key,
            lsn: version.lsn,
            payload: version.payload,
        }))
    }

    fn ranges(&self) -> Option<Arc<RegionRanges>> {
        self.ranges.clone()
    }
}

/// The regions with entries in an L0, ascending.
pub fn regions_of(mut cursor: Cursor<'_>) -> Vec<RegionId> {
    let mut regions = Vec::new();
    let mut is_valid = cursor.first();
    while is_valid {
        let Some((region, _)) = split(cursor.key()) else {
            break;
        };
        regions.push(region);
        let Some(next) = region.0.checked_add(1) else {
            break;
        };
        is_valid = cursor.seek(L0Key::new(RegionId(next), b"").as_slice());
    }
    regions
}
