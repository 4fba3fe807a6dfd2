//! Reads of records of the log: in memory while their segment is there, then through the mapping.

use kreon_base::{PageNo, Result};
use kreon_format::{Fragment, FragmentSeal};
use kreon_mapping::{LentRecord, PageRequest};

use super::home::{Home, LOG_PRIORITY};
use super::log_record::{extent_of, missing, record_of};
use super::segment_table::{SegmentTable, Site};
use crate::format::Location;
use crate::log::Record;

/// Longer records are not fetched: the mapping reads them past its frames.
const FETCHED_BYTES_MAX: usize = 64 << 10;

/// What they need of a log.
pub(super) struct LogReads<'a> {
    pub home: &'a Home,
    pub table: &'a SegmentTable,
}

impl LogReads<'_> {
    /// Lends a record to `use_record`.
    ///
    /// # Errors
    /// `Corruption` if no record is there; those of the device.
    pub(super) fn read<R>(
        &self,
        location: Location,
        use_record: impl FnOnce(Record<'_>) -> R,
    ) -> Result<R> {
        let site = self.table.site(location.offset.segment());
        match site.ok_or_else(|| missing(location))? {
            Site::Memory(buffer) => {
                let bytes = buffer.record(location.offset.within_segment());
                let fragment = bytes.and_then(Fragment::decode_verified);
                let record = fragment.and_then(record_of);
                Ok(use_record(record.ok_or_else(|| missing(location))?))
            }
            Site::Device(sequence) => {
                let (offset, extent) = (location.offset.0, extent_of(location));
                let (mapping, seal) = (&self.home.mapping, self.seal(sequence));
                mapping.with_bytes(offset, extent, LOG_PRIORITY, &mut Vec::new(), |bytes| {
                    let fragment = Fragment::decode(bytes, &seal, location.offset)?;
                    let record = record_of(fragment);
                    Ok(use_record(record.ok_or_else(|| missing(location))?))
                })?
            }
        }
    }

    /// The same without a wait; `None` if it is not in memory, or damaged.
    pub(super) fn read_resident<R>(
        &self,
        location: Location,
        use_record: impl FnOnce(Record<'_>) -> R,
    ) -> Option<R> {
        match self.table.site(location.offset.segment())? {
            Site::Memory(buffer) => {
                let bytes = buffer.record(location.offset.within_segment())?;
                record_of(Fragment::decode_verified(bytes)?).map(use_record)
            }
            Site::Device(sequence) => {
                let (offset, extent) = (location.offset.0, extent_of(location));
                let (mapping, seal) = (&self.home.mapping, self.seal(sequence));
                let scratch = &mut Vec::new();
                let lent = |lent: LentRecord<'_>| {
                    let fragment = Fragment::decode(lent.bytes(), &seal, location.offset).ok()?;
                    record_of(fragment).map(use_record)
                };
                mapping.with_resident_record(offset, extent, LOG_PRIORITY, scratch, lent)?
            }
        }
    }

    /// Brings records into memory, all reads in flight at once. What cannot be read is left to the read that needs it.
    pub(super) fn fetch(&self, locations: impl Iterator<Item = Location>) {
        let is_on_device = |location: &Location| {
            let site = self.table.site(location.offset.segment());
            matches!(site, Some(Site::Device(_))) && extent_of(*location) <= FETCHED_BYTES_MAX
        };
        let pages = locations.filter(is_on_device).flat_map(|location| {
            let last = location.offset.0 + extent_of(location).max(1) as u64 - 1;
            let (first, last) = (location.offset.0, last);
            (PageNo::containing(first).0..=PageNo::containing(last).0).map(PageNo)
        });
        let requests: Vec<_> = pages
            .map(|page| PageRequest {
                page,
                priority: LOG_PRIORITY,
                // Each record has a checksum of its own.
                check: &|_| Ok(()),
            })
            .collect();
        if let Err(error) = self.home.mapping.prefetch(&requests) {
            tracing::debug!(%error, "records were not fetched");
        }
    }

    fn seal(&self, sequence: u64) -> FragmentSeal {
        let store = self.home.store;
        FragmentSeal { store, sequence }
    }
}
