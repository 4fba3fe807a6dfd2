//! Reads that need nothing but the page array and the frames.

use kreon_base::Priority;

use super::Mapping;
use crate::read::{LentRecord, ResidentRecord, touched};

impl Mapping {
    /// Lends a record that stands in one frame or two; `None` if its pages are not resident, or more than two. Never waits.
    #[inline]
    pub fn with_resident_record<R>(
        &self,
        offset_bytes: u64,
        len_bytes: usize,
        priority: Priority,
        scratch: &mut Vec<u8>,
        use_record: impl FnOnce(LentRecord<'_>) -> R,
    ) -> Option<R> {
        let reader = self.reader();
        let record = ResidentRecord::pin(reader.table(), offset_bytes, len_bytes)?;
        reader.counters.hits.add(record.thread(), priority);
        Some(use_record(record.lend(scratch)))
    }

    /// Whether all pages of these bytes are resident at this moment.
    #[inline]
    pub fn are_resident(&self, offset_bytes: u64, len_bytes: usize) -> bool {
        let (first, count) = touched(offset_bytes, len_bytes);
        self.reader().table().are_resident(first, count)
    }
}
