//! The kernel's mapping at work: a word of each page is read or changed.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, ensure};
use kreon_bench_mmap::FilePages;

use super::pool::{Done, on_threads, scattered};
use super::{PAGES, Work};
use crate::meter::Meter;

/// The kernel maps up to so many neighbours in one fault, if it has them in memory.
const FAULT_AROUND_PAGES: u64 = 16;

/// Works on the pages of a file. `is_in_memory`: the kernel has them, so that a fault does not read.
///
/// # Errors
/// If the file cannot be mapped, or a page holds what it should not.
pub fn run(path: &Path, work: Work, threads: u64, is_in_memory: bool) -> anyhow::Result<Done> {
    let file = File::options().read(true).write(true).open(path);
    let file = file.with_context(|| format!("open {}", path.display()))?;
    let pages = FilePages::new(&file, PAGES as usize).context("map it")?;
    let read = |page: u64| {
        let word = pages.first_word(page as usize);
        ensure!(word == page, "page {page} holds {word}");
        Ok(())
    };
    let change = |page: u64| {
        // The word that it has: the page is dirty all the same.
        pages.set_first_word(page as usize, page);
        Ok(())
    };
    let changes = matches!(work, Work::Fresh | Work::FreshEvict);
    for at in 0..work.warm_pages() {
        match changes {
            true => change(scattered(at))?,
            false => read(scattered(at))?,
        }
    }
    let meter = Meter::start();
    let first = work.warm_pages();
    let count = match changes {
        true => on_threads(threads, first, PAGES, &|at| change(scattered(at)))?,
        // Else the first fault would map the neighbours, and their reads would be none.
        false if is_in_memory => on_threads(threads, 0, PAGES / FAULT_AROUND_PAGES, &|at| {
            read(scattered(at) % (PAGES / FAULT_AROUND_PAGES) * FAULT_AROUND_PAGES)
        })?,
        false => on_threads(threads, first, PAGES, &|at| read(scattered(at)))?,
    };
    Ok(Done {
        count,
        taken: meter.stop(),
    })
}
