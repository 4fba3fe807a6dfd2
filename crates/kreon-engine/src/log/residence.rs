//! Where the bytes of a record are now.

use kreon_base::{LogOffset, SEGMENT_BYTES};
use kreon_format::fragment_bytes;
use kreon_mapping::FinalBytes;

use super::cut::SEGMENT;
use super::fragments::final_bytes;
use super::open::Log;

impl Log {
    /// The bytes on the device of a record at `offset` with so many bytes of key and value, those left out that
    /// are in other segments. `None`: it is read in memory, as those of a segment are that is not on the device
    /// or only in part, and a segment that is not of the log is not read at all.
    pub fn on_device(&self, offset: LogOffset, payload_bytes: usize) -> Option<FinalBytes> {
        let within = offset.within_segment();
        let segment = offset.segment();
        let found = self.buffered(segment, self.table.sequence(segment)?);
        let end = match found.as_ref().and_then(|found| found.as_ref()) {
            Some(buffered) => buffered.readable_from,
            None => SEGMENT,
        };
        // What lies behind this segment on the volume must not come into a frame: it would be there, stale, when
        // the log writes that segment.
        let rest = SEGMENT_BYTES as usize - within as usize;
        let len = fragment_bytes(payload_bytes).min(rest);
        (within < end).then(|| final_bytes(offset, len, end))
    }
}
