//! The entries of an L0 from one stretch of the log.

use kreon_base::{Lsn, RegionId, Result};
use kreon_l0::{Cursor, Version};

use crate::keys::{L0Key, split};
use crate::tree::{Entry, EntryStream};

/// The entries of one region: for every key the newest version before `end`, if it is not before `start`. Writers may
/// insert behind `end` meanwhile.
pub struct StretchStream<'a> {
    cursor: Cursor<'a>,
    region: RegionId,
    start: Lsn,
    end: Lsn,
    is_begun: bool,
}

impl<'a> StretchStream<'a> {
    /// A stream before the first entry of `region`.
    pub fn new(cursor: Cursor<'a>, region: RegionId, start: Lsn, end: Lsn) -> Self {
        Self {
            cursor,
            region,
            start,
            end,
            is_begun: false,
        }
    }

    fn step(&mut self) -> bool {
        if std::mem::replace(&mut self.is_begun, true) {
            return self.cursor.next();
        }
        self.cursor.seek(L0Key::new(self.region, b"").as_slice())
    }

    /// The version of the current key that belongs to the stretch.
    fn version(&self) -> Option<Version<'a>> {
        let newest = self.cursor.versions().find(|found| found.lsn < self.end);
        newest.filter(|found| found.lsn >= self.start)
    }
}

impl EntryStream for StretchStream<'_> {
    fn next(&mut self) -> Result<Option<Entry<'_>>> {
        while self.step() {
            let Some((region, key)) = split(self.cursor.key()) else {
                continue;
            };
            if region != self.region {
                break;
            }
            if let Some(Version { lsn, payload, .. }) = self.version() {
                return Ok(Some(Entry { key, lsn, payload }));
            }
        }
        Ok(None)
    }
}
