//! Page array and frames together: every transition of a page, as one step on its entry.

use kreon_base::sync::{
    AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
};
use kreon_base::{PAGE_BYTES, PageBytes, PageNo, Result};
use kreon_device::Backing;

use super::entry::{PageEntry, PageState};
use super::frames::{Frames, FreeFrame, RetiredFrame};
use super::page_array::PageArray;
use super::pins::{self, Pin};

/// The frames, and the array that says which page is in which.
pub(crate) struct FrameSpace {
    frames: Frames,
    array: PageArray,
}

/// A page that stays in its frame while this is held.
pub(crate) struct Pinned<'a> {
    pub(super) frames: &'a Frames,
    pub(super) frame: u32,
    pin: Pin,
}

impl Pinned<'_> {
    /// The page.
    #[inline]
    pub(crate) fn bytes(&self) -> &PageBytes {
        // SAFETY: the pin was set before the page was seen published in this frame, so by rule 3 the
        // frame does not become free before the pin is dropped, and it is borrowed here.
        unsafe { self.frames.published(self.frame) }
    }

    /// The number of the thread that pinned it.
    #[inline]
    pub(crate) const fn thread(&self) -> usize {
        self.pin.thread
    }
}

/// A dirty page on its way to the device. While its entry says so, the page keeps its frame, and no other thread writes
/// it. Made by the thread that set the flag in `entry`, with acquire order.
pub(crate) struct PageWrite<'a> {
    frames: &'a Frames,
    entry: &'a AtomicU32,
    frame: u32,
    page: PageNo,
}

impl PageWrite<'_> {
    pub(crate) const fn page(&self) -> PageNo {
        self.page
    }

    pub(crate) fn bytes(&self) -> &PageBytes {
        // SAFETY: whoever made this token saw the frame published, with acquire order, as it set the
        // flag. A page with that flag is not retired (rule 2), only `finish` clears it, and that
        // consumes the token, which this reference borrows.
        unsafe { self.frames.published(self.frame) }
    }

    /// The write has ended. The page is clean if the device took it, else as dirty as before.
    pub(crate) fn finish(self, taken: bool) {
        let mask = if taken {
            PageEntry::WRITTEN
        } else {
            PageEntry::NOT_WRITTEN
        };
        // Release: the reads of the bytes come before any reuse of the frame.
        self.entry.fetch_and(mask, Release);
    }
}

impl FrameSpace {
    /// `frames` frames, all free, for a volume of up to `pages` pages.
    pub(crate) fn new(
        frames: u32,
        pages: u64,
        huge_pages: bool,
        backing: Backing,
    ) -> Result<(Self, impl Iterator<Item = FreeFrame>)> {
        let space = Self {
            frames: Frames::new(frames, huge_pages, backing)?,
            array: PageArray::new(pages)?,
        };
        // SAFETY: the numbers are below the count, each is claimed once, and nothing is published.
        let free = (0..frames).map(|number| unsafe { FreeFrame::claim(number) });
        Ok((space, free))
    }

    /// The state of a page at this moment.
    #[inline]
    pub(crate) fn state(&self, page: PageNo) -> PageState {
        match self.array.entry(page) {
            Some(entry) => PageEntry(entry.load(Relaxed)).state(),
            None => PageState::Absent,
        }
    }

    /// The states of the pages of a stripe at this moment, absent pages left out.
    pub(crate) fn stripe(&self, stripe: u64) -> impl Iterator<Item = (PageNo, PageState)> {
        let (first, entries) = self.array.stripe(stripe);
        (first.0..).zip(entries).filter_map(|(page, entry)| {
            let entry = PageEntry(entry.load(Relaxed));
            (entry != PageEntry::ABSENT).then(|| (PageNo(page), entry.state()))
        })
    }

    /// Pins a page if it is resident: two loads and a store, none of them to memory that other
    /// readers write to, but for the second-chance bit where it is not set yet.
    #[inline]
    pub(crate) fn pin(&self, page: PageNo) -> Option<Pinned<'_>> {
        let entry = self.array.entry(page)?;
        let frame = PageEntry(entry.load(Relaxed)).resident()?;
        self.confirm(entry, frame, Pin::new(self.address(frame))?)
    }

    /// Has the processor fetch `len_bytes` of a page from `within` on, if it is resident. The frame is not pinned, so
    /// the bytes may be of another page by then: useless, but harmless.
    #[inline]
    pub(crate) fn hint(&self, page: PageNo, within: usize, len_bytes: usize) {
        if let Some(start) = self.frame_start(page) {
            fetch_lines(start, within, len_bytes);
        }
    }

    /// The same for the first bytes of a page and its last line.
    #[inline]
    pub(crate) fn hint_ends(&self, page: PageNo, first_bytes: usize) {
        if let Some(start) = self.frame_start(page) {
            fetch_lines(start, 0, first_bytes);
            fetch_lines(start, PAGE_BYTES - LINE_BYTES, LINE_BYTES);
        }
    }

    #[inline]
    fn frame_start(&self, page: PageNo) -> Option<*const u8> {
        let entry = self.array.entry(page)?.load(Relaxed);
        let frame = PageEntry(entry).resident()?;
        Some(self.frames.address(frame).as_ptr().cast::<u8>())
    }

    /// Copies a page if it is resident, for a thread that has no pin left.
    pub(crate) fn copy(&self, page: PageNo) -> Option<Box<PageBytes>> {
        let entry = self.array.entry(page)?;
        let frame = PageEntry(entry.load(Relaxed)).resident()?;
        let pinned = self.confirm(entry, frame, Pin::spare(self.address(frame)))?;
        Some(Box::new(*pinned.bytes()))
    }

    /// Looks at the entry again now that the pin on `frame` stands (rule 3).
    #[inline]
    fn confirm(&self, entry: &AtomicU32, mut frame: u32, pin: Pin) -> Option<Pinned<'_>> {
        loop {
            // Sequentially consistent, as are the pin before it, the retirement, and the look at the
            // pins after that: in their one order, a pin that comes too late to be seen comes after
            // the retirement, and then so does this load. It also acquires the page's bytes.
            let now = PageEntry(entry.load(SeqCst));
            let there = now.resident()?;
            if there == frame {
                if !now.is_referenced() {
                    // If the entry has just changed, the bit is lost, which costs at most a second chance.
                    let referenced = now.with_referenced();
                    let _ = entry.compare_exchange(now.0, referenced.0, Relaxed, Relaxed);
                }
                return Some(Pinned {
                    frames: &self.frames,
                    frame,
                    pin,
                });
            }
            frame = there;
            pin.change(self.address(frame));
        }
    }

    /// Absent -> loading: this frame is being filled for the page. False if the page is not absent.
    pub(crate) fn begin_load(&self, page: PageNo, frame: &FreeFrame) -> bool {
        let loading = PageEntry::loading(frame.number());
        self.change(page, PageEntry::ABSENT, loading)
    }

    /// Whether the page is being loaded into this frame: false if that was cancelled.
    pub(crate) fn is_loading(&self, page: PageNo, frame: &FreeFrame) -> bool {
        let loading = PageEntry::loading(frame.number());
        let entry = self.array.entry(page);
        entry.is_some_and(|entry| PageEntry(entry.load(Acquire)) == loading)
    }

    /// Loading by this frame -> absent. False if it was cancelled before.
    pub(crate) fn abandon_load(&self, page: PageNo, frame: &FreeFrame) -> bool {
        let loading = PageEntry::loading(frame.number());
        self.change(page, loading, PageEntry::ABSENT)
    }

    /// Loading into any frame -> absent. The loader keeps its frame but can no longer publish it.
    pub(crate) fn cancel_load(&self, page: PageNo) -> bool {
        let Some(entry) = self.array.entry(page) else {
            return false;
        };
        let now = PageEntry(entry.load(Relaxed));
        now.is_loading() && self.change(page, now, PageEntry::ABSENT)
    }

    /// Loading by this frame -> resident and clean, and pinned before it could be evicted, if the thread has a pin left.
    /// The frame comes back if the load was cancelled.
    pub(crate) fn end_load(
        &self,
        page: PageNo,
        frame: FreeFrame,
    ) -> Result<Option<Pinned<'_>>, FreeFrame> {
        let number = frame.number();
        let pin = Pin::new(self.address(number));
        if !self.change(page, PageEntry::loading(number), PageEntry::clean(number)) {
            return Err(frame);
        }
        Ok(pin.map(|pin| Pinned {
            frames: &self.frames,
            frame: number,
            pin,
        }))
    }

    /// Absent -> resident and dirty. The frame comes back if the page is not absent.
    pub(crate) fn publish_dirty(&self, page: PageNo, frame: FreeFrame) -> Result<(), FreeFrame> {
        if self.change(page, PageEntry::ABSENT, PageEntry::dirty(frame.number())) {
            Ok(())
        } else {
            Err(frame)
        }
    }

    /// Resident -> absent, dirty or not, unless it is being written.
    pub(crate) fn retire(&self, page: PageNo) -> Option<RetiredFrame> {
        let entry = self.array.entry(page)?;
        let mut now = PageEntry(entry.load(Relaxed));
        loop {
            let number = now.resident()?;
            if now.is_writing() {
                return None;
            }
            // Acquire, part of it: a writeback's reads of the bytes are over.
            match entry.compare_exchange(now.0, PageEntry::ABSENT.0, SeqCst, Relaxed) {
                Ok(_) => return Some(RetiredFrame { number, page }),
                Err(changed) => now = PageEntry(changed),
            }
        }
    }

    /// Splits retired frames into free ones, each with the page that it held, and those that readers
    /// still use. One look at the pins serves all.
    pub(crate) fn settle(
        &self,
        retired: Vec<RetiredFrame>,
    ) -> (Vec<(FreeFrame, PageNo)>, Vec<RetiredFrame>) {
        let pinned = pins::pinned();
        let (used, unused): (Vec<_>, Vec<_>) = retired
            .into_iter()
            .partition(|frame| pinned.binary_search(&self.address(frame.number)).is_ok());
        let free = unused.into_iter().map(|frame| {
            // SAFETY: the retired token, consumed here, was the only one; its entry was cleared when
            // it was made; and by rule 3 no reader uses the frame: a pin from before the retirement
            // would be in `pinned`, which was looked up after it.
            let token = unsafe { FreeFrame::claim(frame.number) };
            (token, frame.page)
        });
        (free.collect(), used)
    }

    /// The addresses that readers have pinned, sorted, to be asked by [`is_pinned`](Self::is_pinned).
    pub(crate) fn pins(&self) -> Vec<usize> {
        pins::pinned()
    }

    /// Whether a frame was pinned when `pins` was made.
    pub(crate) fn is_pinned(&self, pins: &[usize], frame: u32) -> bool {
        pins.binary_search(&self.address(frame)).is_ok()
    }

    /// Resident and dirty -> being written. `None` if it is not dirty, or being written already.
    pub(crate) fn begin_write(&self, page: PageNo) -> Option<PageWrite<'_>> {
        let entry = self.array.entry(page)?;
        let mut now = PageEntry(entry.load(Relaxed));
        loop {
            let frame = now.resident()?;
            if now.is_writing() || !now.is_dirty() {
                return None;
            }
            match entry.compare_exchange(now.0, now.with_writing().0, Acquire, Relaxed) {
                Ok(_) => {
                    return Some(PageWrite {
                        frames: &self.frames,
                        entry,
                        frame,
                        page,
                    });
                }
                Err(changed) => now = PageEntry(changed),
            }
        }
    }

    /// Takes back the second chance of a page.
    pub(crate) fn clear_referenced(&self, page: PageNo) {
        if let Some(entry) = self.array.entry(page) {
            entry.fetch_and(PageEntry::NOT_REFERENCED, Relaxed);
        }
    }

    /// Gives back the memory of a stripe's entries, all of which are absent.
    pub(crate) fn release_stripe(&self, stripe: u64) {
        self.array.release(stripe);
    }

    pub(crate) fn bytes<'a>(&'a self, frame: &'a FreeFrame) -> &'a PageBytes {
        self.frames.bytes(frame)
    }

    pub(crate) fn bytes_mut<'a>(&'a self, frame: &'a mut FreeFrame) -> &'a mut PageBytes {
        self.frames.bytes_mut(frame)
    }

    #[inline]
    fn address(&self, frame: u32) -> usize {
        self.frames.address(frame).addr().get()
    }

    /// One step from exactly `from`. Release: a thread that finds the new entry sees what was done to the frame before.
    fn change(&self, page: PageNo, from: PageEntry, to: PageEntry) -> bool {
        self.array.entry(page).is_some_and(|entry| {
            entry
                .compare_exchange(from.0, to.0, AcqRel, Relaxed)
                .is_ok()
        })
    }
}

/// A cache line.
const LINE_BYTES: usize = 64;

#[inline]
fn fetch_lines(start: *const u8, within: usize, len_bytes: usize) {
    for at in (within & !(LINE_BYTES - 1)..within + len_bytes).step_by(LINE_BYTES) {
        fetch_ahead(start.wrapping_add(at));
    }
}

#[inline]
fn fetch_ahead(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction is part of every processor of this kind (SSE) and a hint: it accesses
        // nothing as far as the program can tell, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}
