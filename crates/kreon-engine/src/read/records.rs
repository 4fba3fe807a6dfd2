//! Reads of many records at once.

use kreon_base::{LogOffset, Result};
use kreon_format::fragment_bytes;
use kreon_mapping::Fetched;

use super::Reader;
use crate::level::log_source::LOG_PRIORITY;

impl Reader {
    /// Has records at hand that are not in frames, all at once; large ones are read by themselves. They are given by their
    /// places and the bytes of key and value.
    pub fn fetch_records(
        &self,
        records: impl Iterator<Item = (LogOffset, usize)>,
        into: &mut Fetched,
    ) -> Result<()> {
        const FETCH_BYTES_MAX: usize = 64 << 10;
        let (log, mapping) = (self.storage.log.reader(), &self.storage.mapping);
        let mut missing = records
            .filter(|(offset, payload_bytes)| {
                !mapping.are_resident(offset.0, fragment_bytes(*payload_bytes))
            })
            .filter_map(|(offset, payload_bytes)| log.on_device(offset, payload_bytes))
            .filter(|bytes| bytes.len_bytes <= FETCH_BYTES_MAX)
            .peekable();
        if missing.peek().is_none() {
            into.clear();
            return Ok(());
        }
        mapping.fetch(missing, LOG_PRIORITY, into)
    }
}
