//! The checksum of all pages.

use kreon_base::{Checksum, PageBytes, PageNo};
use kreon_format::StoreId;

use super::bytes::put;

/// Where the checksum ends.
pub(super) const CHECKSUM_BYTES: usize = 4;

/// The checksum that a page of `store` at `number` must have: over the store, the number, and all bytes behind the
/// checksum.
pub(super) fn checksum(page: &PageBytes, store: StoreId, number: PageNo) -> u32 {
    // The last four bytes of the seed stand for the checksum, as zero.
    let mut front = [0; 16 + CHECKSUM_BYTES];
    put(&mut front, 0, &store.0.to_le_bytes());
    put(&mut front, 8, &number.0.to_le_bytes());
    let start = Checksum::new().with(&front);
    start.with(&page[CHECKSUM_BYTES..]).finish()
}
