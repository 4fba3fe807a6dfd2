//! Hints to the processor: bytes of resident pages that will be read soon.

use kreon_base::{PAGE_BYTES, PageNo};

use crate::table::PageTable;

/// Most bytes of a hint: as many cache lines as a processor fetches at once.
const HINT_BYTES_MAX: usize = 2048;

/// Bytes from `offset_bytes` on.
#[inline]
pub(crate) fn bytes(table: &PageTable, offset_bytes: u64, len_bytes: usize) {
    let page = PageNo::containing(offset_bytes);
    let within = (offset_bytes % PAGE_BYTES as u64) as usize;
    let len_bytes = len_bytes.min(HINT_BYTES_MAX);
    let here = len_bytes.min(PAGE_BYTES - within);
    table.space().hint(page, within, here);
    if here < len_bytes {
        let next = PageNo(page.0 + 1);
        table.space().hint(next, 0, len_bytes - here);
    }
}

/// The first bytes of a page, and its last line.
#[inline]
pub(crate) fn ends(table: &PageTable, page: PageNo, first_bytes: usize) {
    let first_bytes = first_bytes.min(HINT_BYTES_MAX);
    table.space().hint_ends(page, first_bytes);
}
