//! Pages that were written past the mapping and stay in memory: their readers need not go to the device.

use kreon_base::{PAGE_BYTES, PageNo, Priority};

use crate::read::PageReader;
use crate::table::stripe_of;

/// Puts pages into frames while those are plenty. [`Mapping::admit`](crate::Mapping::admit) has the details.
pub(crate) fn admit(reader: &PageReader, first: PageNo, priority: Priority, bytes: &[u8]) {
    let (pages, rest) = bytes.as_chunks::<PAGE_BYTES>();
    debug_assert!(rest.is_empty(), "part of a page is admitted");
    let (frames, table) = (&reader.frames, reader.table());
    let keeps_pages = reader.mapped.is_none() && reader.modes.prefers_pages();
    if pages.is_empty() || !keeps_pages || !frames.are_plenty() {
        return;
    }
    let mut taken = Vec::with_capacity(pages.len());
    table.pool().take(pages.len(), &mut taken);
    // Neighbours in memory for neighbours on the device: records over two pages can be lent without a copy.
    taken.sort_unstable_by_key(|frame| frame.number());
    for (frame, page) in taken.iter_mut().zip(pages) {
        table.space().bytes_mut(frame).copy_from_slice(page);
    }
    let (mut retired, mut unused) = (Vec::new(), Vec::new());
    let mut filled = (first.0..).map(PageNo).zip(taken).peekable();
    while let Some((page, _)) = filled.peek() {
        let stripe = stripe_of(*page);
        let mut locked = table.lock_stripe(stripe);
        while let Some((page, frame)) = filled.next_if(|(page, _)| stripe_of(*page) == stripe) {
            let refused = locked.admit(page, priority, frame, &mut retired).err();
            unused.extend(refused);
        }
    }
    table.settle(retired);
    table.pool().put_all(unused);
}
