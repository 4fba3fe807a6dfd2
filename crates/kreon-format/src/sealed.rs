//! The preamble and the checksum that all sealed pages share.

use kreon_base::{Checksum, Error, PAGE_BYTES, PageBytes, PageNo, Result};

use crate::StoreId;
use crate::bytes::{put, put_u32, put_u64, u32_at};

/// The version of the format that this build writes; it reads older ones as well. The superblock carries it, so that
/// older builds refuse the whole store. Structures unchanged since version 1 still carry 1.
///
/// - 2: the catalogue states its version and has images of L0.
/// - 3: index nodes above leaves may have filters; such a node carries 3. Moved records are in segments of their own,
///   of log 1. Records can delete ranges, and leaves may have deletions without a record.
/// - 4: records of the log create regions. A catalogue with many regions has them in pages of their own.
/// - 5: values can have attributes, such as their expiry: in records of the log, and in entries of leaves.
/// - 6: values can be packed. Regions can have options of their own, in the catalogue and in the record that creates them.
pub const FORMAT_VERSION: u8 = 6;

/// The oldest version that this build reads.
pub const FORMAT_VERSION_MIN: u8 = 1;

const MAGIC_AT: usize = 4;
const VERSION_AT: usize = 6;
const DETAIL_AT: usize = 7;

/// Length of the preamble of a sealed page, equal in all versions: checksum (4 bytes), magic (2), format version (1),
/// detail (1, with a meaning for each kind of page).
pub(crate) const PREAMBLE_BYTES: usize = 8;

/// Kind of a sealed page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageKind {
    Superblock,
    Bitmap,
    Catalogue,
    LogSegment,
    Node,
    Creation,
}

impl PageKind {
    const fn magic(self) -> [u8; 2] {
        match self {
            Self::Superblock => *b"kS",
            Self::Bitmap => *b"kB",
            Self::Catalogue => *b"kC",
            Self::LogSegment => *b"kG",
            Self::Node => *b"kN",
            Self::Creation => *b"kM",
        }
    }

    /// The version that last changed this kind.
    const fn version(self) -> u8 {
        match self {
            Self::Superblock => FORMAT_VERSION,
            Self::Creation => 3,
            Self::Catalogue => 2,
            Self::Bitmap | Self::LogSegment | Self::Node => 1,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Superblock => "superblock",
            Self::Bitmap => "bitmap block",
            Self::Catalogue => "catalogue page",
            Self::LogSegment => "log segment header",
            Self::Node => "tree node",
            Self::Creation => "creation mark",
        }
    }

    /// Whether `bytes` are marked as this kind.
    pub(crate) fn marks(self, bytes: &PageBytes) -> bool {
        bytes[MAGIC_AT..VERSION_AT] == self.magic()
    }

    /// An error about the page of this kind at `page`.
    #[cold]
    pub(crate) fn damaged(self, page: PageNo, what: impl std::fmt::Display) -> Error {
        Error::corruption(format!("{} at {page}: {what}", self.name()))
    }
}

/// Starts a page of `kind`, zeroed behind the preamble. [`seal`] adds the checksum.
pub(crate) fn begin(bytes: &mut PageBytes, kind: PageKind, detail: u8) {
    bytes.fill(0);
    put(bytes, MAGIC_AT, &kind.magic());
    bytes[VERSION_AT] = kind.version();
    bytes[DETAIL_AT] = detail;
}

/// Sets the format version of a started page.
pub(crate) fn set_version(bytes: &mut PageBytes, version: u8) {
    bytes[VERSION_AT] = version;
}

/// An empty page of `kind`.
pub(crate) fn begin_boxed(kind: PageKind) -> Box<PageBytes> {
    let mut bytes = Box::new([0; _]);
    begin(&mut bytes, kind, 0);
    bytes
}

/// The format version that a page claims.
pub(crate) fn version(bytes: &PageBytes) -> u8 {
    bytes[VERSION_AT]
}

/// The detail byte of the preamble.
pub(crate) fn detail(bytes: &PageBytes) -> u8 {
    bytes[DETAIL_AT]
}

/// The checksum stored in a page.
pub(crate) fn stored_checksum(bytes: &PageBytes) -> u32 {
    u32_at(bytes, 0)
}

/// The checksum that a page of `store` at `page` must have.
pub(crate) fn page_checksum(bytes: &PageBytes, store: StoreId, page: PageNo) -> u32 {
    let mut front = [0; 16 + MAGIC_AT];
    put_u64(&mut front, 0, store.0);
    put_u64(&mut front, 8, page.0);
    Checksum::new()
        .with(&front)
        .with(&bytes[MAGIC_AT..])
        .finish()
}

/// Writes the checksum into a finished page and returns it.
pub(crate) fn seal(bytes: &mut PageBytes, store: StoreId, page: PageNo) -> u32 {
    let checksum = page_checksum(bytes, store, page);
    put_u32(bytes, 0, checksum);
    checksum
}

/// Verifies that `bytes` are an intact page of `kind` for `store` and `page`; returns its checksum.
pub(crate) fn verify(
    bytes: &PageBytes,
    kind: PageKind,
    store: StoreId,
    page: PageNo,
) -> Result<u32> {
    let stored = stored_checksum(bytes);
    let actual = page_checksum(bytes, store, page);
    if stored != actual {
        return Err(mismatch(bytes, kind, page, actual));
    }
    if !kind.marks(bytes) {
        return Err(kind.damaged(page, "the page holds something else"));
    }
    if !(FORMAT_VERSION_MIN..=FORMAT_VERSION).contains(&version(bytes)) {
        return Err(newer(version(bytes)));
    }
    Ok(stored)
}

/// The error for a structure of a version that this build cannot read.
#[cold]
pub(crate) fn newer(version: u8) -> Error {
    Error::invalid(format!(
        "written by a newer format {version}, this build reads up to {FORMAT_VERSION}"
    ))
}

#[cold]
fn mismatch(bytes: &PageBytes, kind: PageKind, page: PageNo, actual: u32) -> Error {
    if *bytes == [0; PAGE_BYTES] {
        return kind.damaged(page, "the page was never written");
    }
    let stored = stored_checksum(bytes);
    kind.damaged(
        page,
        format_args!("checksum {stored:08x} stands there, its bytes make {actual:08x}"),
    )
}
