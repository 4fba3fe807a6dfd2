//! Bringing many pages from the device at once.

use kreon_base::{PAGE_BYTES, PageNo, Priority, Result};
use kreon_device::Read;

use crate::load::{Begin, Load};
use crate::mapping::Mapping;
use crate::options::PageRequest;
use crate::well::{FreeFrame, PageState};

/// Most pages that are merged into one transfer: 1 MiB.
pub(crate) const TRANSFER_PAGES_MAX: usize = 256;

/// Most bytes that a hint fetches: as many lines as a processor has on the way at once.
const HINT_BYTES_MAX: usize = 2048;

/// Most pages that are loaded at once.
const LOADS_MAX: usize = 1024;

impl Mapping {
    /// Whether the page is resident just now.
    #[inline]
    pub fn is_resident(&self, page: PageNo) -> bool {
        matches!(self.pages.space.state(page), PageState::Resident { .. })
    }

    /// Whether so many pages from `first` on are resident just now.
    #[inline]
    pub fn are_resident(&self, first: PageNo, count: u32) -> bool {
        (first.0..first.0 + u64::from(count)).all(|page| self.is_resident(PageNo(page)))
    }

    /// Brings bytes, up to 2 KiB, towards the processor if they are resident: to be called a few hundred
    /// ns before they are read.
    #[inline]
    pub fn hint(&self, offset_bytes: u64, len_bytes: usize) {
        let page = PageNo::containing(offset_bytes);
        let within = (offset_bytes % PAGE_BYTES as u64) as usize;
        let len_bytes = len_bytes.min(HINT_BYTES_MAX);
        let here = len_bytes.min(PAGE_BYTES - within);
        self.pages.space.hint(page, within, here);
        if here < len_bytes {
            self.pages
                .space
                .hint(PageNo(page.0 + 1), 0, len_bytes - here);
        }
    }

    /// Loads those of the pages that are not resident: sorted, neighbours merged, all at once.
    /// Returns when they are resident. Some may be evicted again by then if there are many of them or
    /// others need the frames; reading them later loads them again.
    ///
    /// # Errors
    /// The first of the device or of a `check`. Pages without error are resident all the same.
    pub fn prefetch(&self, requests: &[PageRequest<'_>]) -> Result<()> {
        let missing = self.missing(requests)?;
        let mut outcome = Ok(());
        for batch in missing.chunks(
            self.modes
                .depth_max
                .min(LOADS_MAX)
                .min(self.plan.frames / 4),
        ) {
            outcome = outcome.and(self.load_batch(batch));
        }
        outcome
    }

    /// The requests for pages that are not resident, sorted, each page once.
    fn missing<'r>(&self, requests: &[PageRequest<'r>]) -> Result<Vec<PageRequest<'r>>> {
        let mut missing = Vec::new();
        for request in requests {
            self.check_page(request.page)?;
            if !matches!(
                self.pages.space.state(request.page),
                PageState::Resident { .. }
            ) {
                missing.push(*request);
            }
        }
        missing.sort_unstable_by_key(|request| request.page);
        missing.dedup_by_key(|request| request.page);
        Ok(missing)
    }

    /// Loads sorted pages, then waits for those that others were loading.
    fn load_batch(&self, batch: &[PageRequest<'_>]) -> Result<()> {
        let mut loads = Vec::with_capacity(batch.len());
        let mut elsewhere = Vec::new();
        let mut frames = self.take_frames(batch.len());
        for request in batch {
            // Without a frame left, or room in the table, the page is left to the read that needs it.
            let Some(frame) = frames.pop() else {
                break;
            };
            match self.begin_load_making_room(request.page, request.priority, frame) {
                Begin::Begun(load) => loads.push((load, request)),
                Begin::NotAbsent(frame) => {
                    elsewhere.push(request.page);
                    frames.push(frame);
                }
                Begin::NoRoom(frame) => frames.push(frame),
            }
        }
        for frame in frames {
            self.pool.put(frame);
        }
        let outcome = self.run_loads(loads);
        for page in elsewhere {
            self.wait_loaded(page);
        }
        outcome
    }

    pub(crate) fn begin_load_making_room(
        &self,
        page: PageNo,
        priority: Priority,
        frame: FreeFrame,
    ) -> Begin<'_> {
        match self.begin_load(page, priority, frame) {
            Begin::NoRoom(frame) if self.make_table_room() => {
                self.begin_load(page, priority, frame)
            }
            begin => begin,
        }
    }

    /// Reads, checks and publishes sorted pages.
    fn run_loads(&self, mut loads: Vec<(Load<'_>, &PageRequest<'_>)>) -> Result<()> {
        let (outcomes, called) = self.transfer(&mut loads);
        let pages: Vec<_> = loads.iter().map(|(load, _)| load.page()).collect();
        let mut first = called;
        for ((load, request), outcome) in loads.into_iter().zip(outcomes) {
            let checked = outcome.and_then(|()| match load.bytes() {
                Some(bytes) => (request.check)(bytes),
                None => Ok(()),
            });
            match checked {
                // Cancelled or published: nobody here uses the page.
                Ok(()) => drop(load.end()),
                Err(error) => first = first.and(Err(error)),
            }
        }
        for page in pages {
            self.waiters.wake(page);
        }
        first
    }

    /// Reads sorted pages. Returns the outcome of each, and that of the call.
    fn transfer(
        &self,
        loads: &mut [(Load<'_>, &PageRequest<'_>)],
    ) -> (Vec<Result<()>>, Result<()>) {
        let mut reads: Vec<Read<'_>> = Vec::new();
        let mut next = None;
        for (load, _) in loads.iter_mut() {
            let page = load.page();
            let Some(bytes) = load.bytes_mut() else {
                continue;
            };
            match reads.last_mut() {
                Some(run) if next == Some(page) && run.buffers.len() < TRANSFER_PAGES_MAX => {
                    run.buffers.push(bytes.as_mut_slice());
                }
                _ => reads.push(Read::new(page.offset_bytes(), bytes.as_mut_slice())),
            }
            next = Some(PageNo(page.0 + 1));
        }
        if reads.is_empty() {
            return (Vec::new(), Ok(()));
        }
        let called = self.device.read(&mut reads);
        let outcomes = outcomes(reads, &called);
        let arrived = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        self.counters.pages_read.add(arrived as u64);
        (outcomes, called)
    }
}

/// The outcome of each page of the reads. A call that failed without saying which read it was has
/// failed them all.
fn outcomes(reads: Vec<Read<'_>>, called: &Result<()>) -> Vec<Result<()>> {
    let unnamed = match called {
        Err(error) if reads.iter().all(|read| read.outcome.is_ok()) => Some(error.clone()),
        _ => None,
    };
    let mut outcomes = Vec::new();
    for read in reads {
        let outcome = match &unnamed {
            Some(error) => Err(error.clone()),
            None => read.outcome,
        };
        outcomes.extend(std::iter::repeat_n(outcome, read.buffers.len()));
    }
    outcomes
}
