//! The entries of one region of a frozen L0, in the order in which a merge takes them.

use kreon_base::{RegionId, Result};
use kreon_l0::{Cursor, Version, Versions};

use crate::keys::{L0Key, split};
use crate::tree::{Entry, EntryStream};

/// See the module's text.
pub struct RegionStream<'a> {
    cursor: Cursor<'a>,
    region: RegionId,
    key: &'a [u8],
    versions: Option<Versions<'a>>,
}

impl<'a> RegionStream<'a> {
    /// Starts before the first entry of `region`.
    pub fn new(mut cursor: Cursor<'a>, region: RegionId) -> Self {
        cursor.seek(L0Key::new(region, b"").as_slice());
        let mut stream = Self {
            cursor,
            region,
            key: b"",
            versions: None,
        };
        stream.stand();
        stream
    }

    fn stand(&mut self) {
        let here = split(self.cursor.key()).filter(|(region, _)| *region == self.region);
        self.versions = here.filter(|_| self.cursor.is_valid()).map(|(_, key)| {
            self.key = key;
            self.cursor.versions()
        });
    }

    fn next_version(&mut self) -> Option<Version<'a>> {
        while let Some(versions) = &mut self.versions {
            if let Some(version) = versions.next() {
                return Some(version);
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
}

/// The regions that have entries in an L0, ascending.
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
