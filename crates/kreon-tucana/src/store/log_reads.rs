//! Reads of records of the log: in memory while their segment is there, then through the mapping.

use kreon_base::{Result, SEGMENT_BYTES};
use kreon_format::{Fragment, FragmentSeal};
use kreon_mapping::{Fetched, FinalBytes, LentRecord};

use super::home::{Home, LOG_PRIORITY};
use super::log_record::{extent_of, missing, record_of};
use super::segment_table::{SegmentTable, Site};
use crate::format::Location;
use crate::log::Record;

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

    /// Makes records available that are about to be read, all reads in flight at once: those that are in no frame come into
    /// frames while these are plenty, else into `into`. What cannot be read is left to the read that needs it.
    pub(super) fn fetch(&self, locations: impl Iterator<Item = Location>, into: &mut Fetched) {
        let on_device = |location: Location| {
            let site = self.table.site(location.offset.segment());
            let is_on_device = matches!(site, Some(Site::Device(_)));
            // It was written as a whole, or never will be.
            let segment_end = location.offset.0.next_multiple_of(SEGMENT_BYTES);
            is_on_device.then(|| FinalBytes {
                offset_bytes: location.offset.0,
                len_bytes: extent_of(location),
                final_end_bytes: segment_end,
            })
        };
        let records = locations.filter_map(on_device);
        let mapping = &self.home.mapping;
        if let Err(error) = mapping.fetch(records, LOG_PRIORITY, into) {
            tracing::debug!(%error, "records were not fetched");
        }
    }

    /// Lends a record that was fetched to `use_record`; `None` if it was not, or is damaged.
    pub(super) fn read_fetched<R>(
        &self,
        location: Location,
        fetched: &Fetched,
        use_record: impl FnOnce(Record<'_>) -> R,
    ) -> Option<R> {
        let Site::Device(sequence) = self.table.site(location.offset.segment())? else {
            return None;
        };
        let bytes = fetched.get(location.offset.0, extent_of(location))?;
        let fragment = Fragment::decode(bytes, &self.seal(sequence), location.offset).ok()?;
        record_of(fragment).map(use_record)
    }

    fn seal(&self, sequence: u64) -> FragmentSeal {
        let store = self.home.store;
        FragmentSeal { store, sequence }
    }
}
