//! Pages that come into being, and pages that cease.

use kreon_base::{PAGE_BYTES, PageBytes, PageNo, Priority, Result};
use kreon_device::AlignedBuf;

use crate::mapping::Mapping;
use crate::shard::{Locked, Removal, stripe_of};
use crate::well::{FreeFrame, RetiredFrame, STRIPE_PAGES};

/// How [`Mapping::publish_fresh`] went.
enum Published {
    Yes,
    NoRoom(FreeFrame),
}

impl Mapping {
    /// Gives a page new content, without reading what the device has there (`Kreon 3.3.1`). The page
    /// is resident and dirty then; the content does not change again until the page is discarded.
    /// Whatever the mapping knew under this number before is gone for good, a write of it that is
    /// under way included: the call waits for its end.
    ///
    /// When more than the given share of the frames is dirty, the call writes some back. If there is
    /// no frame to be had, it writes the page to the device at once.
    ///
    /// No two threads may make the same page fresh at the same time, nor one make it fresh while another discards it.
    ///
    /// # Errors
    /// Those of the device, in writing this page or others. The page may be resident or not: discard
    /// it, or make it fresh again.
    pub fn fresh(&self, page: PageNo, priority: Priority, bytes: &PageBytes) -> Result<()> {
        self.check_page(page)?;
        self.counters.pages_fresh.add(1);
        if let Some(hot) = &self.hot {
            hot.forget(page, 1);
        }
        if let Some(mapped) = &self.mapped {
            mapped.forget(page, 1);
        }
        let mut frame = self.take_frame();
        while let Some(mut filled) = frame {
            self.pages
                .space
                .bytes_mut(&mut filled)
                .copy_from_slice(bytes);
            match self.publish_fresh(page, priority, filled) {
                Published::Yes => return self.write_back_excess(),
                Published::NoRoom(unused) => {
                    let room = self.make_table_room();
                    if room {
                        frame = Some(unused);
                    } else {
                        self.pool.put(unused);
                        frame = None;
                    }
                }
            }
        }
        self.write_past(page, bytes)
    }

    /// Forgets pages `first` to `first + pages - 1`, dirty or not: their content is never written, and
    /// a load of one that is under way will not make it resident. When the call returns, no write of
    /// them is under way, so that the range can be used past the mapping. Pages that readers are using
    /// stay intact until they are done.
    ///
    /// A range may be discarded whole, whether or not its pages were ever seen: a stripe without
    /// frames costs one look.
    pub fn discard(&self, first: PageNo, pages: u64) {
        let end = first.0.saturating_add(pages).min(self.plan.pages);
        if let Some(hot) = &self.hot {
            hot.forget(first, end.saturating_sub(first.0));
        }
        if let Some(mapped) = &self.mapped {
            mapped.forget(first, end.saturating_sub(first.0));
        }
        let mut page = first.0;
        while page < end {
            let stripe = stripe_of(PageNo(page));
            let stripe_end = ((stripe + 1) * STRIPE_PAGES).min(end);
            let mut retired = Vec::new();
            let mut locked = self.pages.lock_stripe(stripe);
            if locked
                .book()
                .stripes
                .get(&stripe)
                .is_some_and(|&frames| frames > 0)
            {
                for number in page..stripe_end {
                    clear(&mut locked, PageNo(number), &mut retired);
                }
            }
            drop(locked);
            self.settle(retired);
            page = stripe_end;
        }
    }

    /// Makes a filled frame the content of a page.
    fn publish_fresh(&self, page: PageNo, priority: Priority, filled: FreeFrame) -> Published {
        let mut retired = Vec::new();
        let mut locked = self.pages.lock(page);
        let mut frame = filled;
        let published = loop {
            clear(&mut locked, page, &mut retired);
            if !locked.attach(page) {
                break Published::NoRoom(frame);
            }
            match locked.publish_dirty(page, priority, frame) {
                Ok(()) => break Published::Yes,
                // Not reached: the page is absent and its shard locked.
                Err(unused) => {
                    locked.detach(page);
                    frame = unused;
                }
            }
        };
        drop(locked);
        self.settle(retired);
        published
    }

    /// Writes a fresh page to the device without a frame.
    fn write_past(&self, page: PageNo, bytes: &PageBytes) -> Result<()> {
        self.discard(page, 1);
        let mut buffer = AlignedBuf::new(PAGE_BYTES);
        buffer.copy_from_slice(bytes);
        let written = self.device.write_at(page.offset_bytes(), &buffer);
        // A reader of what the page was before may have begun to load it meanwhile.
        self.discard(page, 1);
        self.counters.pages_written_past.add(1);
        if written.is_err() {
            self.counters.write_errors.add(1);
        }
        written
    }
}

/// Makes a page absent, after the end of a write of it that is under way.
fn clear(locked: &mut Locked<'_>, page: PageNo, retired: &mut Vec<RetiredFrame>) {
    loop {
        match locked.remove(page) {
            Removal::Absent => return,
            Removal::Retired(frame) => {
                retired.push(frame);
                return;
            }
            Removal::Writing => locked.wait(),
        }
    }
}
