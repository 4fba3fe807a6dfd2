//! How the space of a volume is used, in figures.

use kreon_base::PAGE_BYTES;

use super::reserve::SpaceReserve;
use super::segment::Segment;
use super::segments::Segments;

/// Of the segments of a volume, how many are used for what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// All.
    pub segments: u32,
    /// Those that can be handed out.
    pub free: u32,
    /// Of these, those that the file system holds blocks for.
    pub free_backed: u32,
    /// Free ones that new data may not use.
    pub reserve: u32,
    /// Live bytes of all log segments.
    pub log_live_bytes: u64,
    /// Bytes of the device that the volume has blocks for.
    pub taken_bytes: u64,
    /// Bytes of the reserve that are neither for nodes nor for L0s.
    pub fixed_reserve_bytes: u64,
}

impl Space {
    pub(crate) fn of(segments: &Segments, reserve: &SpaceReserve) -> Self {
        let all = segments.all().map(|(_, segment)| segment);
        Self {
            segments: segments.count(),
            free: segments.free_count(),
            free_backed: segments.free_backed(),
            reserve: reserve.segments(segments),
            log_live_bytes: segments.live_bytes(),
            taken_bytes: all.map(Segment::taken_bytes).sum(),
            fixed_reserve_bytes: reserve.fixed_pages(segments) * PAGE_BYTES as u64,
        }
    }
}
