//! The chain of pages with the encoded catalogue.

use kreon_base::{Epoch, Error, PAGE_BYTES, PageBytes, PageNo, Result};

use crate::bytes::{array_at, put, put_u16, put_u48, u16_at, u48_at};
use crate::sealed::{self, PREAMBLE_BYTES, PageKind};
use crate::{PAGE_POINTER_BYTES, PagePointer, StoreId};

const PAGE_AT: usize = PREAMBLE_BYTES;
const EPOCH_AT: usize = 14;
const LENGTH_AT: usize = 20;
const HAS_NEXT_AT: usize = 22;
const NEXT_AT: usize = 24;
const PAYLOAD_AT: usize = NEXT_AT + PAGE_POINTER_BYTES;

/// Bytes of the catalogue in each page.
pub const CATALOGUE_PAGE_PAYLOAD_BYTES: usize = PAGE_BYTES - PAYLOAD_AT;

/// Pages of a catalogue of `payload_bytes`, at least one.
pub const fn pages_needed(payload_bytes: usize) -> usize {
    let pages = payload_bytes.div_ceil(CATALOGUE_PAGE_PAYLOAD_BYTES);
    if pages == 0 { 1 } else { pages }
}

/// Splits `payload` into sealed pages, each with a pointer to the next, for the addresses `pages`. Fewer than
/// [`pages_needed`] is `InvalidArgument`; surplus pages are empty links of the chain. Returns the pages in chain order
/// and the pointer to the first.
#[allow(clippy::type_complexity)]
pub fn encode_chain(
    store: StoreId,
    epoch: Epoch,
    payload: &[u8],
    pages: &[PageNo],
) -> Result<(Vec<(PageNo, Box<PageBytes>)>, PagePointer)> {
    let needed = pages_needed(payload.len());
    if pages.len() < needed {
        let given = pages.len();
        return Err(Error::invalid(format!(
            "{given} pages for a catalogue that takes {needed}"
        )));
    }
    let mut chain = Vec::with_capacity(pages.len());
    let mut next = None;
    // Backwards, because each page holds the checksum of its successor.
    for (index, &page) in pages.iter().enumerate().rev() {
        let start = index * CATALOGUE_PAGE_PAYLOAD_BYTES;
        let end = payload.len().min(start + CATALOGUE_PAGE_PAYLOAD_BYTES);
        let part = payload.get(start..end).unwrap_or_default();
        let (bytes, pointer) = encode_page(store, epoch, page, part, next);
        chain.push((page, bytes));
        next = Some(pointer);
    }
    chain.reverse();
    match next {
        Some(head) => Ok((chain, head)),
        None => Err(Error::invalid("no page for a catalogue")),
    }
}

fn encode_page(
    store: StoreId,
    epoch: Epoch,
    page: PageNo,
    payload: &[u8],
    next: Option<PagePointer>,
) -> (Box<PageBytes>, PagePointer) {
    let mut bytes = sealed::begin_boxed(PageKind::Catalogue);
    put_u48(&mut *bytes, PAGE_AT, page.0);
    put_u48(&mut *bytes, EPOCH_AT, epoch.0);
    put_u16(&mut *bytes, LENGTH_AT, payload.len() as u16);
    if let Some(next) = next {
        bytes[HAS_NEXT_AT] = 1;
        put(&mut *bytes, NEXT_AT, &next.encode());
    }
    put(&mut *bytes, PAYLOAD_AT, payload);
    let checksum = sealed::seal(&mut bytes, store, page);
    let pointer = PagePointer {
        page,
        epoch,
        checksum,
    };
    (bytes, pointer)
}

/// Verifies the page at `pointer`; returns its part of the catalogue and the pointer to the next page.
pub fn decode_page<'a>(
    bytes: &'a PageBytes,
    store: StoreId,
    pointer: &PagePointer,
) -> Result<(&'a [u8], Option<PagePointer>)> {
    let damaged = |what: &str| PageKind::Catalogue.damaged(pointer.page, what);
    let checksum = sealed::verify(bytes, PageKind::Catalogue, store, pointer.page)?;
    let page = PageNo(u48_at(bytes, PAGE_AT));
    let epoch = Epoch(u48_at(bytes, EPOCH_AT));
    if (page, epoch, checksum) != (pointer.page, pointer.epoch, pointer.checksum) {
        return Err(damaged("intact, but not the page that the pointer names"));
    }
    let payload = bytes[PAYLOAD_AT..].get(..usize::from(u16_at(bytes, LENGTH_AT)));
    let payload = payload.ok_or_else(|| damaged("longer than a page"))?;
    let next = match bytes[HAS_NEXT_AT] {
        0 => None,
        _ => array_at(bytes, NEXT_AT).map(|pointer| PagePointer::decode(&pointer)),
    };
    Ok((payload, next))
}
