//! Segments of the log whose records were all spilled.

use kreon_base::SegmentId;
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
    /// How many segments its stream has filled since.
    pub age: u64,
}

impl Victim {
    /// Share of its bytes that no tree points at.
    pub fn dead_share(&self) -> f64 {
        1.0 - (f64::from(self.live_bytes) / f64::from(LOG_PAYLOAD_BYTES)).min(1.0)
    }
}
