//! The mapping at work over a device.

use std::hint::black_box;
use std::sync::Arc;

use anyhow::{bail, ensure};
use kreon_base::{PAGE_BYTES, PageNo, Priority};
use kreon_device::Device;
use kreon_mapping::{FinalBytes, Mapping, MappingModes, MappingOptions, PageRequest};

use super::device::fill;
use super::{EVICTING_BYTES, PAGES, Work};
use crate::keys::hash;
use crate::meter::{Meter, Taken};

/// Bytes of a record.
const RECORD_BYTES: usize = 256;

/// Records that are read: the tables of the memory have room for a few more, and their pages do not fit.
const RECORDS: u64 = 10_000;

/// Memory for records.
const RECORD_MEMORY_BYTES: usize = 16 << 20;

/// Times that hits go through all pages, and reads of records through all of those.
const PASSES: u64 = 8;

/// A mapping, and what is done with it.
pub struct Pool {
    /// The mapping.
    pub mapping: Mapping,
    work: Work,
    threads: u64,
}

/// What threads did, and what it took.
pub struct Done {
    /// Operations.
    pub count: u64,
    /// Their time.
    pub taken: Taken,
}

impl Pool {
    /// A mapping of `device` with as much memory as the work wants, ready for it.
    ///
    /// # Errors
    /// If there is no memory, or the device fails.
    pub fn new(
        device: Arc<dyn Device>,
        work: Work,
        threads: u64,
        modes: MappingModes,
    ) -> anyhow::Result<Self> {
        let volume_bytes = PAGES * PAGE_BYTES as u64;
        let memory_bytes = match work {
            Work::MissEvict | Work::FreshEvict => EVICTING_BYTES as usize,
            Work::Records => RECORD_MEMORY_BYTES,
            _ => volume_bytes as usize / 15 * 16 + (8 << 20),
        };
        let mut options = MappingOptions::new(memory_bytes, volume_bytes);
        options.modes = modes;
        if matches!(work, Work::Fresh | Work::Writeback) {
            // Nothing is written back unless it is asked for.
            options.dirty_share_percent = 90;
        }
        let pool = Self {
            mapping: Mapping::new(device, options)?,
            work,
            threads,
        };
        pool.prepare()?;
        Ok(pool)
    }

    fn prepare(&self) -> anyhow::Result<()> {
        let warm = |page| match self.work {
            Work::FreshEvict | Work::Writeback => self.renew(page),
            _ => self.read(page),
        };
        let pages = match self.work {
            Work::Hit => PAGES,
            Work::Writeback => PAGES / 10 * 8,
            work => work.warm_pages(),
        };
        (0..pages).try_for_each(|at| warm(scattered(at)))?;
        if self.work == Work::Records {
            // Once into the queue of those that were read once, once more into that of the others.
            for _ in 0..4 {
                (0..RECORDS).try_for_each(|number| self.read_record(number))?;
            }
        }
        Ok(())
    }

    /// Does the work, on all threads.
    ///
    /// # Errors
    /// If the device fails, or a page holds what it should not.
    pub fn run(&self) -> anyhow::Result<Done> {
        let meter = Meter::start();
        let count = match self.work {
            Work::Hit => self.each(0, PAGES * PASSES, |at| self.read(scattered(at % PAGES)))?,
            Work::Miss | Work::MissEvict => {
                self.each(self.work.warm_pages(), PAGES, |at| self.read(scattered(at)))?
            }
            // As many as become dirty without a writeback.
            Work::Fresh => self.each(0, PAGES / 10 * 8, |at| self.renew(scattered(at)))?,
            Work::FreshEvict => self.each(self.work.warm_pages(), PAGES, |at| {
                self.renew(scattered(at))
            })?,
            Work::Writeback => {
                let before = self.mapping.stats().pages_written;
                self.mapping.sync()?;
                self.mapping.stats().pages_written - before
            }
            Work::Records => self.each(0, RECORDS * PASSES, |at| {
                self.read_record(hash(at) % RECORDS)
            })?,
        };
        Ok(Done {
            count,
            taken: meter.stop(),
        })
    }

    /// Calls `one` with every number of a range, on all threads. Returns how many there are.
    fn each(
        &self,
        first: u64,
        end: u64,
        one: impl Fn(u64) -> anyhow::Result<()> + Sync,
    ) -> anyhow::Result<u64> {
        on_threads(self.threads, first, end, &one)
    }

    fn read(&self, page: u64) -> anyhow::Result<()> {
        let word = self
            .mapping
            .read(request(page, 2), |bytes| first_word(bytes))?;
        ensure!(word == page, "page {page} holds {word}");
        Ok(())
    }

    fn renew(&self, page: u64) -> anyhow::Result<()> {
        let mut bytes = [0; PAGE_BYTES];
        fill(page, &mut bytes);
        Ok(self.mapping.fresh(PageNo(page), Priority(2), &bytes)?)
    }

    fn read_record(&self, number: u64) -> anyhow::Result<()> {
        let page = scattered(number);
        let offset_bytes = PageNo(page).offset_bytes() + 1024;
        let bytes = FinalBytes {
            offset_bytes,
            len_bytes: RECORD_BYTES,
            final_end_bytes: offset_bytes + RECORD_BYTES as u64,
        };
        let (mut scratch, log) = (Vec::new(), Priority(u8::MAX));
        let read = &self.mapping;
        let word = read.with_final_bytes(bytes, log, &mut scratch, first_word)?;
        ensure!(
            black_box(word) == page,
            "a record of page {page} holds {word}"
        );
        Ok(())
    }
}

/// Calls `one` with every number of a range, each thread with neighbouring ones. Returns how many there are.
///
/// # Errors
/// The first of them.
pub fn on_threads(
    threads: u64,
    first: u64,
    end: u64,
    one: &(impl Fn(u64) -> anyhow::Result<()> + Sync),
) -> anyhow::Result<u64> {
    let share = (end - first).div_ceil(threads.max(1));
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..threads)
            .map(|thread| {
                let start = (first + thread * share).min(end);
                let stop = (start + share).min(end);
                scope.spawn(move || (start..stop).try_for_each(one))
            })
            .collect();
        for thread in started {
            match thread.join() {
                Ok(outcome) => outcome?,
                Err(_) => bail!("a thread panicked"),
            }
        }
        Ok(end - first)
    })
}

/// The page at a place of an order that looks like none. Each step is one to one, so each page has one place.
pub const fn scattered(at: u64) -> u64 {
    const LOW: u64 = PAGES - 1;
    let x = at.wrapping_mul(0x9e37_79b1) & LOW;
    (x ^ x >> 7).wrapping_mul(0x85eb_ca6b) & LOW
}

/// A request for a page that is not checked.
pub fn request(page: u64, priority: u8) -> PageRequest<'static> {
    PageRequest {
        page: PageNo(page),
        priority: Priority(priority),
        check: &|_| Ok(()),
    }
}

pub(super) fn first_word(bytes: &[u8]) -> u64 {
    bytes
        .first_chunk()
        .map_or(0, |word| u64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_one_place_in_the_order() {
        let mut seen = vec![false; PAGES as usize];
        for at in 0..PAGES {
            let before = std::mem::replace(&mut seen[scattered(at) as usize], true);
            assert!(!before, "place {at} is that of a page before");
        }
    }

    #[test]
    fn threads_share_a_range_without_a_gap() {
        let sum = std::sync::atomic::AtomicU64::new(0);
        let one = |at| {
            sum.fetch_add(at, std::sync::atomic::Ordering::Relaxed);
            Ok(())
        };
        assert_eq!(on_threads(3, 10, 20, &one).expect("no error"), 10);
        assert_eq!(sum.into_inner(), (10..20).sum::<u64>());
    }
}
