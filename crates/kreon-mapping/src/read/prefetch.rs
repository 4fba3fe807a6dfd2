//! Loading many pages at once.

use kreon_base::Result;
use kreon_device::Read;

use super::load::{Begin, Load, begin_load};
use super::prefetch_reads::{GAP_PAGES_MAX, PrefetchReads, outcomes_of};
use super::reader::PageReader;
use crate::options::PageRequest;
use crate::well::FreeFrame;

/// Most pages that are loaded at once.
const LOADS_MAX: usize = 1024;

/// A load, and the request for it.
type Requested<'a, 'r> = (Load<'a>, &'r PageRequest<'r>);

/// Loads those of the pages that are not resident. [`Mapping::prefetch`](crate::Mapping::prefetch) has the details.
pub(crate) fn prefetch(reader: &PageReader, requests: &[PageRequest<'_>]) -> Result<()> {
    if let Some(mapped) = &reader.mapped {
        mapped.will_need(requests);
        return Ok(());
    }
    let missing = missing(reader, requests)?;
    let mut outcome = Ok(());
    let loads_max = LOADS_MAX.min(reader.table().frames() / 4);
    for batch in missing.chunks(reader.modes.depth_max().clamp(1, loads_max)) {
        outcome = outcome.and(load_batch(reader, batch));
    }
    outcome
}

/// The requests for pages that are not resident, sorted, each page once.
fn missing<'r>(reader: &PageReader, requests: &[PageRequest<'r>]) -> Result<Vec<PageRequest<'r>>> {
    let table = reader.table();
    let mut missing = Vec::new();
    for request in requests {
        table.check_page(request.page)?;
        if !table.is_resident(request.page) {
            missing.push(*request);
        }
    }
    missing.sort_unstable_by_key(|request| request.page);
    missing.dedup_by_key(|request| request.page);
    Ok(missing)
}

/// Loads sorted pages, then waits for those that other threads were loading.
fn load_batch(reader: &PageReader, batch: &[PageRequest<'_>]) -> Result<()> {
    let mut loads = Vec::with_capacity(batch.len());
    let mut elsewhere = Vec::new();
    let mut frames = reader.frames.take_many(batch.len());
    // Taken from the end: neighbouring pages get neighbouring frames, and a record in two pages is read in place.
    frames.reverse();
    for request in batch {
        // Without a frame left, or room in the page array, the page is left to the read that needs it.
        let Some(frame) = frames.pop() else {
            break;
        };
        match begin_load(&reader.frames, request.page, request.priority, frame) {
            Begin::Begun(load) => loads.push((load, request)),
            Begin::NotAbsent(frame) => {
                elsewhere.push(request.page);
                frames.push(frame);
            }
            Begin::NoRoom(frame) => frames.push(frame),
        }
    }
    reader.table().pool().put_all(frames);
    let outcome = run_loads(reader, loads);
    for page in elsewhere {
        reader.table().wait_loaded(page);
    }
    outcome
}

/// Reads, checks and publishes sorted pages.
fn run_loads(reader: &PageReader, mut loads: Vec<Requested<'_, '_>>) -> Result<()> {
    let outcomes = transfer(reader, &mut loads);
    debug_assert_eq!(outcomes.len(), loads.len());
    let pages: Vec<_> = loads.iter().map(|(load, _)| load.page()).collect();
    let mut first = Ok(());
    for ((load, request), outcome) in loads.into_iter().zip(outcomes) {
        let checked = outcome.and_then(|()| match load.bytes() {
            Some(bytes) => (request.check)(bytes),
            None => Ok(()),
        });
        match checked {
            // Published or cancelled; the page is not used here.
            Ok(()) => drop(load.end()),
            Err(error) => first = first.and(Err(error)),
        }
    }
    for page in pages {
        reader.table().waiters().wake(page);
    }
    first
}

/// Reads sorted pages. Returns the outcome of each.
fn transfer(reader: &PageReader, loads: &mut [Requested<'_, '_>]) -> Vec<Result<()>> {
    if loads.is_empty() {
        return Vec::new();
    }
    let mut fillers = take_fillers(reader, loads);
    let mut runs = PrefetchReads::new(loads, reader.table().space(), &mut fillers);
    let called = reader.device.read(runs.reads());
    let mut outcomes = runs.outcomes(&called);
    reader.table().pool().put_all(fillers);
    retry(reader, loads, &mut outcomes);
    let arrived = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    reader.counters.pages_read.add(arrived as u64);
    outcomes
}

/// Reads the pages that failed once more, each by itself: the transfer may have failed for another page of it, perhaps
/// one in a gap.
fn retry(reader: &PageReader, loads: &mut [Requested<'_, '_>], outcomes: &mut [Result<()>]) {
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
    let called = reader.device.read(&mut reads);
    for (outcome, read) in failed.into_iter().zip(outcomes_of(&reads, &called)) {
        outcome.clone_from(read);
    }
}

/// Frames for the short gaps between pages: as many as are needed and free without an eviction.
fn take_fillers(reader: &PageReader, loads: &[Requested<'_, '_>]) -> Vec<FreeFrame> {
    let pairs = loads.iter().zip(loads.iter().skip(1));
    let wanted: u64 = pairs
        .map(|((one, _), (next, _))| next.page().0 - one.page().0 - 1)
        .filter(|&gap| gap <= GAP_PAGES_MAX)
        .sum();
    let mut fillers = Vec::new();
    reader.table().pool().take(wanted as usize, &mut fillers);
    fillers
}
