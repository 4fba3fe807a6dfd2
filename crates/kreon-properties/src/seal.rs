//! Checksums, made as the format describes them and not with the code of the format.

use kreon_base::{Checksum, LogOffset, PageBytes, PageNo};
use kreon_format::{FragmentSeal, StoreId, fragment_extent};

/// Marks of the kinds of pages.
pub const SUPERBLOCK: [u8; 2] = *b"kS";
pub const BITMAP: [u8; 2] = *b"kB";
pub const CATALOGUE: [u8; 2] = *b"kC";
pub const LOG_SEGMENT: [u8; 2] = *b"kG";
pub const NODE: [u8; 2] = *b"kN";

/// Says that a page is of the kind with these marks, and of this format.
pub fn mark(bytes: &mut PageBytes, marks: [u8; 2]) {
    bytes[4..6].copy_from_slice(&marks);
    bytes[6] = kreon_format::FORMAT_VERSION;
}

/// Puts the right checksum into a page, and returns it.
pub fn page(bytes: &mut PageBytes, store: StoreId, page: PageNo) -> u32 {
    bytes[..4].fill(0);
    let seed = Checksum::new()
        .with(&store.0.to_le_bytes())
        .with(&page.0.to_le_bytes());
    let checksum = seed.with(&bytes[..]).finish();
    bytes[..4].copy_from_slice(&checksum.to_le_bytes());
    checksum
}

/// Puts the right checksum into the fragment or pad at the start of `bytes`, if it is whole; whether it
/// is. `offset` is where it stands on the volume.
pub fn fragment(bytes: &mut [u8], seal: &FragmentSeal, offset: LogOffset) -> bool {
    let Some(extent) = bytes.first_chunk().map(fragment_extent) else {
        return false;
    };
    let Some(whole) = bytes.get_mut(..extent) else {
        return false;
    };
    let is_pad = whole[7] & 0x80 != 0;
    let front_bytes = if is_pad { 8 } else { 16 };
    let mut header = [0; 16];
    header[..front_bytes].copy_from_slice(&whole[..front_bytes]);
    header[..4].fill(0);
    let checksum = Checksum::new()
        .with(&seal.store.0.to_le_bytes())
        .with(&seal.sequence.to_le_bytes())
        .with(&offset.0.to_le_bytes())
        .with(&header)
        .with(&whole[front_bytes..])
        .finish();
    whole[..4].copy_from_slice(&checksum.to_le_bytes());
    true
}

/// Puts the right checksum over all bytes into the four bytes at `at`, if there are so many.
pub fn whole(bytes: &mut [u8], at: usize) {
    let Some(place) = bytes.get_mut(at..at + 4) else {
        return;
    };
    place.fill(0);
    let checksum = Checksum::of(bytes);
    bytes[at..at + 4].copy_from_slice(&checksum.to_le_bytes());
}
