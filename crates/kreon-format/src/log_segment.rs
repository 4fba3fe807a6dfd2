//! The first page of a log segment, and the mapping between LSNs and positions.

use kreon_base::{Incarnation, LogId, Lsn, PageBytes, Result, SEGMENT_BYTES, SegmentId};

use crate::StoreId;
use crate::bytes::{put_u16, put_u32, put_u64, u16_at, u32_at, u64_at};
use crate::sealed::{self, PREAMBLE_BYTES, PageKind};

/// Length of a log segment's header in bytes.
pub const LOG_HEADER_BYTES: u32 = 4096;

/// Bytes of a log segment that hold records.
pub const LOG_PAYLOAD_BYTES: u32 = SEGMENT_BYTES as u32 - LOG_HEADER_BYTES;

/// Largest sequence of a segment: one segment a millisecond for 69 years. LSN arithmetic up to its end cannot overflow.
pub const LOG_SEQUENCE_MAX: u64 = 1 << 41;

/// Least sequence of segments with moved records; those of the main log are below. So the sequence determines the log,
/// and a fragment of one log never verifies in the other.
pub const MOVED_SEQUENCE_MIN: u64 = 1 << 40;

const STORE_AT: usize = PREAMBLE_BYTES;
const SEQUENCE_AT: usize = 16;
const INCARNATION_AT: usize = 24;
const DURABLE_AT: usize = 32;
const SEGMENT_AT: usize = 40;
const LOG_AT: usize = 44;
const FLAGS_AT: usize = 46;
const PREVIOUS_AT: usize = 48;
const NEXT_AT: usize = 52;

const HAS_PREVIOUS: u8 = 1;
const HAS_NEXT: u8 = 2;

const _: () = assert!(LOG_HEADER_BYTES as usize == kreon_base::PAGE_BYTES);

/// The header of a log segment, in its first page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSegmentHeader {
    /// The store.
    pub store: StoreId,
    /// The log of the segment.
    pub log: LogId,
    /// Number of the segment.
    pub segment: SegmentId,
    /// Sequence in the log: 1, 2, 3 and so on.
    pub sequence: u64,
    /// The incarnation that writes it.
    pub incarnation: Incarnation,
    /// The segment with the preceding sequence.
    pub previous: Option<SegmentId>,
    /// The segment reserved for the next sequence.
    pub next: Option<SegmentId>,
    /// All earlier bytes were durable when the header was written.
    pub durable: Lsn,
}

impl LogSegmentHeader {
    /// Encodes the sealed page.
    pub fn encode(&self) -> Box<PageBytes> {
        let mut bytes = sealed::begin_boxed(PageKind::LogSegment);
        put_u64(&mut *bytes, STORE_AT, self.store.0);
        put_u64(&mut *bytes, SEQUENCE_AT, self.sequence);
        put_u64(&mut *bytes, INCARNATION_AT, self.incarnation.0);
        put_u64(&mut *bytes, DURABLE_AT, self.durable.0);
        put_u32(&mut *bytes, SEGMENT_AT, self.segment.0);
        put_u16(&mut *bytes, LOG_AT, self.log.0);
        let links = [
            (self.previous, HAS_PREVIOUS, PREVIOUS_AT),
            (self.next, HAS_NEXT, NEXT_AT),
        ];
        for (link, flag, at) in links {
            if let Some(segment) = link {
                bytes[FLAGS_AT] |= flag;
                put_u32(&mut *bytes, at, segment.0);
            }
        }
        sealed::seal(&mut bytes, self.store, self.segment.first_page());
        bytes
    }

    /// Decodes the header of `segment` of `store`. `Corruption` if the page is not one, for example if the segment was
    /// reserved but never written.
    pub fn decode(bytes: &PageBytes, store: StoreId, segment: SegmentId) -> Result<Self> {
        let page = segment.first_page();
        sealed::verify(bytes, PageKind::LogSegment, store, page)?;
        let flags = bytes[FLAGS_AT];
        let link = |flag, at| (flags & flag != 0).then(|| SegmentId(u32_at(bytes, at)));
        let header = Self {
            store: StoreId(u64_at(bytes, STORE_AT)),
            log: LogId(u16_at(bytes, LOG_AT)),
            segment: SegmentId(u32_at(bytes, SEGMENT_AT)),
            sequence: u64_at(bytes, SEQUENCE_AT),
            incarnation: Incarnation(u64_at(bytes, INCARNATION_AT)),
            previous: link(HAS_PREVIOUS, PREVIOUS_AT),
            next: link(HAS_NEXT, NEXT_AT),
            durable: Lsn(u64_at(bytes, DURABLE_AT)),
        };
        if header.store != store || header.segment != segment {
            return Err(PageKind::LogSegment.damaged(page, "of another store or segment"));
        }
        Ok(header)
    }
}

/// LSN of the record that starts `within_segment` bytes ([`LOG_HEADER_BYTES`] or more) from the start of the segment
/// with this sequence. Saturates.
pub const fn lsn_at(sequence: u64, within_segment: u32) -> Lsn {
    let start = sequence.saturating_mul(LOG_PAYLOAD_BYTES as u64);
    Lsn(start.saturating_add(within_segment.saturating_sub(LOG_HEADER_BYTES) as u64))
}

/// The inverse of [`lsn_at`]: sequence of the segment, and byte offset in it.
pub const fn place_of(lsn: Lsn) -> (u64, u32) {
    let within_payload = (lsn.0 % LOG_PAYLOAD_BYTES as u64) as u32;
    (
        lsn.0 / LOG_PAYLOAD_BYTES as u64,
        LOG_HEADER_BYTES + within_payload,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lsn_and_place_are_inverse_and_gapless_over_segment_ends() {
        let last = lsn_at(6, SEGMENT_BYTES as u32 - 1);
        assert_eq!(lsn_at(7, LOG_HEADER_BYTES), Lsn(last.0 + 1));
        for (sequence, within) in [(0, 4096), (1, 4096), (9, 4104), (1 << 40, 2_097_144)] {
            assert_eq!(place_of(lsn_at(sequence, within)), (sequence, within));
        }
        assert_eq!(lsn_at(u64::MAX, u32::MAX), Lsn::MAX);
    }
}
