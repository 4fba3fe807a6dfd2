//! Bitmap blocks: the use of each segment of a group.

use kreon_base::{Epoch, LogId, PAGE_BYTES, PageBytes, PageNo, Result, SEGMENT_PAGES, SegmentId};

use crate::bytes::{put, put_u16, put_u32, put_u64, u16_at, u32_at, u64_at};
use crate::sealed::{self, PREAMBLE_BYTES, PageKind};
use crate::{GroupPointer, StoreId};

/// Segments in a group.
pub const GROUP_SEGMENTS: usize = 44;

/// Pages at the start of each group that are reserved for superblock slots and bitmap blocks.
pub const GROUP_HEAD_PAGES: u64 = 64;

const EPOCH_AT: usize = PREAMBLE_BYTES;
const GROUP_AT: usize = 16;
const COPY_AT: usize = 20;
/// End of the header; the three bytes behind the copy number are zero.
const RECORDS_AT: usize = 24;

/// A record: kind (1 byte) | zero (1) | log (2) | live (4) | sequence (8) | bitmap (64).
const RECORD_BYTES: usize = 80;
const LOG_IN_RECORD: usize = 2;
const LIVE_IN_RECORD: usize = 4;
const SEQUENCE_IN_RECORD: usize = 8;
const PAGES_IN_RECORD: usize = 16;

const _: () = assert!(RECORDS_AT + GROUP_SEGMENTS * RECORD_BYTES <= PAGE_BYTES);
const _: () = assert!(PAGES_IN_RECORD + SEGMENT_PAGES as usize / 8 == RECORD_BYTES);

/// First of the two pages of a group's bitmap block, from the start of the group.
const BITMAP_PAGE: u64 = 32;

const _: () = assert!(BITMAP_PAGE + 2 <= GROUP_HEAD_PAGES);

/// Use of a segment, with its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SegmentKind {
    /// Unused.
    #[default]
    Free = 0,
    /// Tree and catalogue pages, allocated one by one.
    Tree = 1,
    /// A segment of a log.
    Log = 2,
}

impl SegmentKind {
    const fn of(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Free),
            1 => Some(Self::Tree),
            2 => Some(Self::Log),
            _ => None,
        }
    }
}

/// The use of one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SegmentRecord {
    /// Use of the segment.
    pub kind: SegmentKind,
    /// The log that a log segment belongs to.
    pub log: LogId,
    /// Sequence of a log segment: its ordinal in the log.
    pub sequence: u64,
    /// Bytes of its log records that tree entries point at.
    pub live_bytes: u32,
    /// For a tree segment: one bit for each page in use, bit `p % 64` of word `p / 64`.
    pub pages: [u64; 8],
}

/// The segments of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BitmapBlock {
    /// Number of the group.
    pub group: u32,
    /// The epoch whose checkpoint wrote the block.
    pub epoch: Epoch,
    /// The segments of the group; those beyond the end of the volume are free.
    pub segments: [SegmentRecord; GROUP_SEGMENTS],
}

impl SegmentRecord {
    fn encode(&self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        bytes[0] = self.kind as u8;
        put_u16(&mut bytes, LOG_IN_RECORD, self.log.0);
        put_u32(&mut bytes, LIVE_IN_RECORD, self.live_bytes);
        put_u64(&mut bytes, SEQUENCE_IN_RECORD, self.sequence);
        let (words, _) = bytes[PAGES_IN_RECORD..].as_chunks_mut();
        for (word, pages) in words.iter_mut().zip(self.pages) {
            *word = pages.to_le_bytes();
        }
        bytes
    }

    fn decode(bytes: &[u8; RECORD_BYTES]) -> Option<Self> {
        Some(Self {
            kind: SegmentKind::of(bytes[0])?,
            log: LogId(u16_at(bytes, LOG_IN_RECORD)),
            sequence: u64_at(bytes, SEQUENCE_IN_RECORD),
            live_bytes: u32_at(bytes, LIVE_IN_RECORD),
            pages: std::array::from_fn(|word| u64_at(bytes, PAGES_IN_RECORD + word * 8)),
        })
    }
}

impl BitmapBlock {
    /// A block whose segments are all free.
    pub fn new(group: u32, epoch: Epoch) -> Self {
        Self {
            group,
            epoch,
            segments: [SegmentRecord::default(); GROUP_SEGMENTS],
        }
    }

    /// The sealed page for `copy` (0 or 1), and the pointer to it for the catalogue.
    pub fn encode(&self, store: StoreId, copy: u8) -> (Box<PageBytes>, GroupPointer) {
        let mut bytes = sealed::begin_boxed(PageKind::Bitmap);
        put_u64(&mut *bytes, EPOCH_AT, self.epoch.0);
        put_u32(&mut *bytes, GROUP_AT, self.group);
        bytes[COPY_AT] = copy;
        for (index, record) in self.segments.iter().enumerate() {
            put(
                &mut *bytes,
                RECORDS_AT + index * RECORD_BYTES,
                &record.encode(),
            );
        }
        let checksum = sealed::seal(&mut bytes, store, bitmap_page(self.group, copy));
        let pointer = GroupPointer {
            copy,
            epoch: self.epoch,
            checksum,
        };
        (bytes, pointer)
    }

    /// Decodes `copy` of the bitmap block of `group`.
    pub fn decode(bytes: &PageBytes, store: StoreId, group: u32, copy: u8) -> Result<Self> {
        let page = bitmap_page(group, copy);
        sealed::verify(bytes, PageKind::Bitmap, store, page)?;
        if u32_at(bytes, GROUP_AT) != group || bytes[COPY_AT] != copy {
            return Err(PageKind::Bitmap.damaged(page, "of another group or copy"));
        }
        let mut block = Self::new(group, Epoch(u64_at(bytes, EPOCH_AT)));
        let (records, _) = bytes[RECORDS_AT..].as_chunks();
        for (index, (to, record)) in block.segments.iter_mut().zip(records).enumerate() {
            *to = SegmentRecord::decode(record).ok_or_else(|| {
                PageKind::Bitmap.damaged(
                    page,
                    format_args!("the record of segment {index} is invalid"),
                )
            })?;
        }
        Ok(block)
    }

    /// Whether a page claims to be this copy of the block of `group`, of any store. Not verified, for callers that do
    /// not know the store.
    pub(crate) fn is_claimed(bytes: &PageBytes, group: u32, copy: u8) -> bool {
        let is_zero = |gap: &[u8]| gap.iter().all(|byte| *byte == 0);
        PageKind::Bitmap.marks(bytes)
            && u32_at(bytes, GROUP_AT) == group
            && bytes[COPY_AT] == copy
            && is_zero(&bytes[COPY_AT + 1..RECORDS_AT])
    }

    /// Like [`decode`](Self::decode), and requires the epoch and checksum of `pointer`: an older block, left by a lost
    /// write, is an error.
    pub fn decode_pointed(
        bytes: &PageBytes,
        store: StoreId,
        group: u32,
        pointer: &GroupPointer,
    ) -> Result<Self> {
        let block = Self::decode(bytes, store, group, pointer.copy)?;
        let checksum = sealed::stored_checksum(bytes);
        if block.epoch != pointer.epoch || checksum != pointer.checksum {
            let page = bitmap_page(group, pointer.copy);
            return Err(PageKind::Bitmap.damaged(
                page,
                "intact, but not the block that the catalogue points to",
            ));
        }
        Ok(block)
    }
}

/// The page of `copy` (0 or 1) of the bitmap block of `group`.
pub const fn bitmap_page(group: u32, copy: u8) -> PageNo {
    PageNo(group_first_segment(group).first_page().0 + BITMAP_PAGE + (copy & 1) as u64)
}

/// The group that holds `segment`.
pub const fn group_of(segment: SegmentId) -> u32 {
    segment.0 / GROUP_SEGMENTS as u32
}

/// Index of `segment` within its group.
pub const fn slot_in_group(segment: SegmentId) -> usize {
    segment.0 as usize % GROUP_SEGMENTS
}

/// The first segment of `group`.
pub const fn group_first_segment(group: u32) -> SegmentId {
    SegmentId(group.saturating_mul(GROUP_SEGMENTS as u32))
}

/// Number of groups in a volume of `segments`.
pub const fn groups_of(segments: u32) -> u32 {
    segments.div_ceil(GROUP_SEGMENTS as u32)
}
