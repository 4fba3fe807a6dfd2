//! The transfers of a prefetch: neighbours merged, short gaps read along into spare frames.

use kreon_base::{PageNo, Result};
use kreon_device::Read;

use super::load::Load;
use crate::options::PageRequest;
use crate::transfer::TRANSFER_PAGES_MAX;
use crate::well::{FrameSpace, FreeFrame};

/// Longest gap between two pages that is read along to make one transfer of two. A transfer costs
/// the processor about 5 us, as much as a dozen more pages in it do.
pub(super) const GAP_PAGES_MAX: u64 = 2;

/// The reads for sorted pages.
pub(super) struct PrefetchReads<'r> {
    reads: Vec<Read<'r>>,
    /// For each page the index of its read.
    places: Vec<usize>,
}

impl<'r> PrefetchReads<'r> {
    /// Merges neighbours, and pages with a short gap between them while there are fillers for the gap.
    pub(super) fn new(
        loads: &'r mut [(Load<'_>, &PageRequest<'_>)],
        space: &'r FrameSpace,
        fillers: &'r mut [FreeFrame],
    ) -> Self {
        let mut fillers = fillers.iter_mut();
        let mut reads: Vec<Read<'r>> = Vec::new();
        let mut places = Vec::with_capacity(loads.len());
        let mut next = PageNo(0);
        for (load, _) in loads {
            let page = load.page();
            debug_assert!(page >= next, "pages are sorted, each once");
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

    /// The reads, for the device.
    pub(super) fn reads(&mut self) -> &mut [Read<'r>] {
        &mut self.reads
    }

    /// The outcome of each page, after the call returned `called`.
    pub(super) fn outcomes(self, called: &Result<()>) -> Vec<Result<()>> {
        let of_reads: Vec<_> = outcomes_of(&self.reads, called).collect();
        let of_page = |place: usize| of_reads.get(place).copied().unwrap_or(called).clone();
        self.places.iter().map(|&place| of_page(place)).collect()
    }
}

/// The outcome of each read, after the call returned `called`. If no read has an error of its own, that is the outcome of
/// all.
pub(super) fn outcomes_of<'a>(
    reads: &'a [Read<'_>],
    called: &'a Result<()>,
) -> impl Iterator<Item = &'a Result<()>> {
    let is_named = reads.iter().any(|read| read.outcome.is_err());
    reads.iter().map(move |read| match is_named {
        true => &read.outcome,
        false => called,
    })
}
