//! Units and limits, from which all sizes in the project are derived.

/// Bytes of a page: the unit of tree nodes and of the mapping.
pub const PAGE_BYTES: usize = 4096;

/// Bytes of a segment: the unit of space allocation on the volume, aligned to its size.
pub const SEGMENT_BYTES: u64 = 2 << 20;

/// Pages in a segment.
pub const SEGMENT_PAGES: u64 = SEGMENT_BYTES / PAGE_BYTES as u64;

/// Longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 64 << 10;

/// Longest value, in bytes.
pub const VALUE_BYTES_MAX: usize = 1 << 30;

/// Longest region name, in bytes of UTF-8.
pub const REGION_NAME_BYTES_MAX: usize = 255;

/// The bytes of one page.
pub type PageBytes = [u8; PAGE_BYTES];

const _: () = assert!(SEGMENT_BYTES.is_multiple_of(PAGE_BYTES as u64));
