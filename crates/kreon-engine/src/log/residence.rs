//! Where the bytes of a record are now.

use kreon_base::LogOffset;

use super::open::Log;

impl Log {
    /// Whether the record at `offset` is read from the device: all its bytes are there. Those of a
    /// segment that is still in memory are not, or only in part.
    pub fn is_on_device(&self, offset: LogOffset) -> bool {
        let found = self.buffers.find(offset.segment());
        match found.as_ref().and_then(|found| found.as_ref()) {
            Some(buffered) => offset.within_segment() < buffered.readable_from,
            None => true,
        }
    }
}
