//! Segments of the log whose records were all spilled.

use kreon_base::{SEGMENT_BYTES, SegmentId};
use kreon_format::LOG_PAYLOAD_BYTES;

/// A segment that can be emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    /// Where it is.
    pub segment: SegmentId,
    /// Its place in its stream.
    pub sequence: u64,
    /// Bytes of the records that trees point at.
    pub live_bytes: u32,
}

impl Victim {
    /// Bytes of it that no tree points at, its head included.
    pub fn dead_bytes(&self) -> u64 {
        SEGMENT_BYTES.saturating_sub(u64::from(self.live_bytes))
    }

    /// Share of its bytes that no tree points at.
    pub fn dead_share(&self) -> f64 {
        1.0 - (f64::from(self.live_bytes) / f64::from(LOG_PAYLOAD_BYTES)).min(1.0)
    }
}
