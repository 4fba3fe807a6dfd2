//! Records that stand in frames, lent where they stand, with what is known of them.
//!
//! A frame has 64 marks. Mark `i` of the first 63: the record of at least 64 bytes that starts in line `i` was verified.
//! Mark 63: the record that comes over from the page before was. Shorter records, and those that start in the last line,
//! have no mark. All marks are set for a page that came from memory, and none for one that came from the device; so a
//! record over two pages is verified again if either of them was loaded since.

use std::ops::Range;

use kreon_base::sync::Ordering::Relaxed;
use kreon_base::{PAGE_BYTES, PageNo};

use super::byte_range::touched;
use crate::table::PageTable;
use crate::well::Pinned;

/// Bytes of a frame for each mark.
const LINE_BYTES: usize = PAGE_BYTES / u64::BITS as usize;

/// The mark of what comes over from the page before.
const CONTINUED: u64 = 1 << CONTINUED_LINE;
const CONTINUED_LINE: usize = u64::BITS as usize - 1;

/// A record that stands in frames, pinned.
pub(crate) struct ResidentRecord<'a> {
    first: Pinned<'a>,
    second: Option<Pinned<'a>>,
    /// Position of the record in its first page.
    within: usize,
    len: usize,
}

/// A record that is lent.
pub struct LentRecord<'a> {
    record: &'a ResidentRecord<'a>,
    bytes: &'a [u8],
}

impl<'a> ResidentRecord<'a> {
    /// Pins the record, if it stands in one page or two and they are resident.
    #[inline]
    pub(crate) fn pin(table: &'a PageTable, offset_bytes: u64, len: usize) -> Option<Self> {
        let (page, pages) = touched(offset_bytes, len);
        let space = table.space();
        let second = match pages {
            1 => None,
            2 => Some(space.pin(PageNo(page.0 + 1))?),
            _ => return None,
        };
        Some(Self {
            first: space.pin(page)?,
            second,
            within: (offset_bytes % PAGE_BYTES as u64) as usize,
            len,
        })
    }

    /// The number of the thread that pinned it.
    #[inline]
    pub(crate) fn thread(&self) -> usize {
        self.first.thread()
    }

    /// Lends it; through `scratch` if it stands in frames that are not neighbours.
    #[inline]
    pub(crate) fn lend<'s>(&'s self, scratch: &'s mut Vec<u8>) -> LentRecord<'s> {
        let range = self.within..self.within + self.len;
        let bytes = match &self.second {
            None => self.first.bytes().get(range),
            Some(second) => match self.first.with_next(second) {
                Some(pair) => pair.get(range),
                None => Some(self.copy(second, range, scratch)),
            },
        };
        LentRecord {
            record: self,
            bytes: bytes.unwrap_or_default(),
        }
    }

    #[cold]
    fn copy<'s>(
        &self,
        second: &Pinned<'_>,
        range: Range<usize>,
        scratch: &'s mut Vec<u8>,
    ) -> &'s [u8] {
        let (front, rest) = (range.start..PAGE_BYTES, range.end - PAGE_BYTES);
        scratch.clear();
        scratch.extend_from_slice(self.first.bytes().get(front).unwrap_or_default());
        scratch.extend_from_slice(second.bytes().get(..rest).unwrap_or_default());
        scratch
    }

    /// The mark of its start; none: it has no mark.
    #[inline]
    fn mark(&self) -> Option<u64> {
        let line = self.within / LINE_BYTES;
        (self.len >= LINE_BYTES && line < CONTINUED_LINE).then(|| 1 << line)
    }
}

impl LentRecord<'_> {
    /// Its bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.bytes
    }

    /// Whether it was [verified](Self::set_verified) since its pages came from the device, or they never did.
    #[inline]
    pub fn is_verified(&self) -> bool {
        let has = |pinned: &Pinned<'_>, mark| pinned.marks().load(Relaxed) & mark != 0;
        let record = self.record;
        record.mark().is_some_and(|mark| has(&record.first, mark))
            && record
                .second
                .as_ref()
                .is_none_or(|second| has(second, CONTINUED))
    }

    /// Remembers for later readers that it was verified.
    #[inline]
    pub fn set_verified(&self) {
        if let Some(mark) = self.record.mark() {
            self.record.first.marks().fetch_or(mark, Relaxed);
            if let Some(second) = &self.record.second {
                second.marks().fetch_or(CONTINUED, Relaxed);
            }
        }
    }
}
