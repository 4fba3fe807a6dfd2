//! A part of a volume: bytes under one checksum, and what they are.

use std::ops::Range;

use kreon_base::{LogOffset, Lsn, PAGE_BYTES, PageBytes, PageNo};
use kreon_sim::Image;

/// What some bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// One of the four superblock slots.
    Superblock,
    /// The copy of a bitmap block that counts.
    Bitmap,
    /// A page of the catalogue.
    Catalogue,
    /// An index node of so much height above the leaves.
    Index(u8),
    /// A leaf.
    Leaf,
    /// A fragment, before the replay marker, of a record that a leaf points at.
    Record,
    /// The header of a segment that holds such records, and that no replay needs.
    Header,
    /// The header of a segment that a replay reads.
    TailHeader,
    /// A fragment that a replay reads.
    TailRecord,
    /// Filler that a replay reads.
    TailPad,
}

impl Kind {
    /// What to count it as.
    pub fn name(self) -> String {
        match self {
            Self::Superblock => "superblock slot".into(),
            Self::Bitmap => "bitmap block".into(),
            Self::Catalogue => "catalogue page".into(),
            Self::Index(level) => format!("index node of level {level}"),
            Self::Leaf => "leaf".into(),
            Self::Record => "record of a tree".into(),
            Self::Header => "segment header before the marker".into(),
            Self::TailHeader => "segment header behind the marker".into(),
            Self::TailRecord => "record behind the marker".into(),
            Self::TailPad => "pad behind the marker".into(),
        }
    }
}

/// Bytes that belong together: they share one checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What they are.
    pub kind: Kind,
    /// Where, in bytes of the volume.
    pub range: Range<u64>,
    /// Parts that must be whole for this one to be reached: nodes above it.
    pub above: Vec<usize>,
    /// A record: where it starts, which an error about any of its fragments tells.
    pub record: LogOffset,
    /// A part behind the marker: where it stands in the log.
    pub lsn: Lsn,
    /// A part behind the marker: whole units before it, counted from the marker.
    pub units_before: usize,
    /// A part behind the marker: until here it says that the log is durable.
    pub claims: Lsn,
}

impl Part {
    /// A whole page.
    pub fn page(kind: Kind, page: PageNo) -> Self {
        let start = page.offset_bytes();
        Self::of(kind, start..start + PAGE_BYTES as u64)
    }

    /// Some bytes.
    pub fn of(kind: Kind, range: Range<u64>) -> Self {
        Self {
            kind,
            range,
            above: Vec::new(),
            record: LogOffset(0),
            lsn: Lsn(0),
            units_before: 0,
            claims: Lsn(0),
        }
    }

    /// Its first page.
    pub fn page_no(&self) -> PageNo {
        PageNo::containing(self.range.start)
    }
}

/// One page of the image.
pub fn page_at(image: &Image, page: PageNo) -> Box<PageBytes> {
    let mut bytes = Box::new([0; PAGE_BYTES]);
    image.read(page.offset_bytes(), bytes.as_mut_slice());
    bytes
}
