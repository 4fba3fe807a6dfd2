//! Bringing many pages from the device at once.

use kreon_base::{PAGE_BYTES, PageNo, Priority, Result};
use kreon_device::Read;

use crate::load::{Begin, Load};
use crate::mapping::Mapping;
use crate::options::PageRequest;
use crate::well::{FreeFrame, PageState, Space};

/// Most pages that are merged into one transfer: 1 MiB.
pub(crate) const TRANSFER_PAGES_MAX: usize = 256;

/// Most bytes that a hint fetches: as many lines as a processor has on the way at once.
const HINT_BYTES_MAX: usize = 2048;

/// Most pages that are loaded at once.
const LOADS_MAX: usize = 1024;

/// Longest gap between two pages that is read along to make one transfer of two. A transfer costs
/// the processor about 5 us, as much as a dozen more pages in it do.
const GAP_PAGES_MAX: u64 = 2;

/// What to read for sorted pages.
struct Runs<'r> {
    reads: Vec<Read<'r>>,
    /// For each page the read that has it.
    places: Vec<usize>,
}

impl<'r> Runs<'r> {
    /// Merges neighbours, and pages with a short gap between them while there are fillers to read the
    /// gap into.
    fn new(
        loads: &'r mut [(Load<'_>, &PageRequest<'_>)],
        space: &'r Space,
        fillers: &'r mut [FreeFrame],
    ) -> Self {
        let mut fillers = fillers.iter_mut();
        let mut reads: Vec<Read<'r>> = Vec::new();
        let mut places = Vec::with_capacity(loads.len());
        let mut next = PageNo(0);
        for (load, _) in loads {
            let page = load.page();
            let gap = page.0 - next.0;
            if let Some(bytes) = load.bytes_mut() {
                match reads.last_mut() {
                    Some(run)
                        if gap <= (fillers.len() as u64).min(GAP_PAGES_MAX)
                            && run.buffers.len() + (gap as usize) < TRANSFER_PAGES_MAX =>
                    {
                        for filler in fillers.by_ref().take(gap as usize) {
                            run.buffers.push(space.bytes_mut(filler));
                        }
                        run.buffers.push(bytes);
                    }
                    _ => reads.push(Read::new(page.offset_bytes(), bytes)),
                }
            }
            places.push(reads.len().saturating_sub(1));
            next = PageNo(page.0 + 1);
        }
        Self { reads, places }
    }

    /// The outcome of each page. A call that failed without saying which read it was has failed all.
    fn outcomes(self, called: &Result<()>) -> Vec<Result<()>> {
        let named = self.reads.iter().any(|read| read.outcome.is_err());
        let outcome = |place: usize| match (self.reads.get(place), called) {
            (Some(read), _) if named => read.outcome.clone(),
            _ => called.clone(),
        };
        self.places.iter().map(|&place| outcome(place)).collect()
    }
}

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

    /// Whether [`with_bytes`](Self::with_bytes) of this range would do without the device just now.
    pub fn has_bytes(&self, offset_bytes: u64, len_bytes: usize) -> bool {
        let first = PageNo::containing(offset_bytes);
        let last = PageNo::containing(offset_bytes + len_bytes.max(1) as u64 - 1);
        self.are_resident(first, (last.0 - first.0 + 1) as u32)
            || self.has_record(offset_bytes, len_bytes)
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

    /// The same for the first bytes of a page, up to 2 KiB, and its last line.
    #[inline]
    pub fn hint_ends(&self, page: PageNo, first_bytes: usize) {
        let first_bytes = first_bytes.min(HINT_BYTES_MAX);
        self.pages.space.hint_ends(page, first_bytes);
    }

    /// Loads those of the pages that are not resident: sorted, neighbours merged, all at once.
    /// Returns when they are resident. Some may be evicted again by then if there are many of them or
    /// others need the frames; reading them later loads them again.
    ///
    /// # Errors
    /// The first of the device or of a `check`. Pages without error are resident all the same.
    pub fn prefetch(&self, requests: &[PageRequest<'_>]) -> Result<()> {
        if let Some(mapped) = &self.mapped {
            mapped.will_need(requests);
            return Ok(());
        }
        let missing = self.missing(requests)?;
        let mut outcome = Ok(());
        let loads_max = LOADS_MAX.min(self.plan.frames / 4);
        for batch in missing.chunks(self.modes.depth_max.clamp(1, loads_max)) {
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
        let outcomes = self.transfer(&mut loads);
        let pages: Vec<_> = loads.iter().map(|(load, _)| load.page()).collect();
        let mut first = Ok(());
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

    /// Reads sorted pages. Returns the outcome of each.
    fn transfer(&self, loads: &mut [(Load<'_>, &PageRequest<'_>)]) -> Vec<Result<()>> {
        if loads.is_empty() {
            return Vec::new();
        }
        let mut fillers = self.take_fillers(loads);
        let mut runs = Runs::new(loads, &self.pages.space, &mut fillers);
        let called = self.device.read(&mut runs.reads);
        let mut outcomes = runs.outcomes(&called);
        for filler in fillers {
            self.pool.put(filler);
        }
        self.retry(loads, &mut outcomes);
        let arrived = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        self.counters.pages_read.add(arrived as u64);
        outcomes
    }

    /// Reads the pages that failed once more, each by itself: its run may have failed for another
    /// page, even one that nobody asked for.
    fn retry(&self, loads: &mut [(Load<'_>, &PageRequest<'_>)], outcomes: &mut [Result<()>]) {
        let mut reads = Vec::new();
        let mut failed = Vec::new();
        for ((load, _), outcome) in loads.iter_mut().zip(outcomes) {
            let offset_bytes = load.page().offset_bytes();
            if let (Err(_), Some(bytes)) = (&outcome, load.bytes_mut()) {
                reads.push(Read::new(offset_bytes, bytes));
                failed.push(outcome);
            }
        }
        if reads.is_empty() {
            return;
        }
        let called = self.device.read(&mut reads);
        let named = reads.iter().any(|read| read.outcome.is_err());
        for (outcome, read) in failed.into_iter().zip(reads) {
            *outcome = if named { read.outcome } else { called.clone() };
        }
    }

    /// Free frames to read the short gaps between pages into: as many as are needed and free anyway.
    fn take_fillers(&self, loads: &[(Load<'_>, &PageRequest<'_>)]) -> Vec<FreeFrame> {
        let pairs = loads.iter().zip(loads.iter().skip(1));
        let wanted: u64 = pairs
            .map(|((one, _), (next, _))| next.page().0 - one.page().0 - 1)
            .filter(|&gap| gap <= GAP_PAGES_MAX)
            .sum();
        let mut fillers = Vec::new();
        self.pool.take(wanted as usize, &mut fillers);
        fillers
    }
}
