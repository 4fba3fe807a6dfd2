//! Writeback of dirty pages that lie apart: one in so many, on a file of the real device.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use kreon_base::{PAGE_BYTES, PageNo, Priority};
use kreon_bench_mmap::FilePages;
use kreon_device::{Device, FileDevice, FileOptions};
use kreon_mapping::{Mapping, MappingModes, MappingOptions, Writeback};

use super::device::fill;
use super::pool::Done;
use crate::meter::Meter;
use crate::recovery::child::forget_pages;

/// Dirty pages: 32 MiB.
pub const DIRTY_PAGES: u64 = 8192;

/// One page in so many is dirty, at most.
pub const SPACING_MAX: u64 = 64;

const MIB: u64 = 1 << 20;

/// Name of the file.
pub const FILE: &str = "sparse.pages";

/// Makes the file, whose every block was written.
///
/// # Errors
/// If there is no room.
pub fn make(dir: &Path) -> anyhow::Result<()> {
    let file = File::create(dir.join(FILE)).context("make the file of sparse writebacks")?;
    let mut writer = std::io::BufWriter::with_capacity(MIB as usize, file);
    let ones = vec![1; MIB as usize];
    for _ in 0..DIRTY_PAGES * SPACING_MAX * PAGE_BYTES as u64 / MIB {
        std::io::Write::write_all(&mut writer, &ones)?;
    }
    Ok(writer.into_inner()?.sync_all()?)
}

/// Writes back the dirty pages of the mapping, one in `spacing`, and flushes.
///
/// # Errors
/// If the device fails.
pub fn pool(dir: &Path, spacing: u64, writeback: Writeback) -> anyhow::Result<(Done, u64)> {
    // A direct write would have to drop pages of its range from the page cache.
    forget_pages(dir)?;
    let options = FileOptions::default();
    let device: Arc<dyn Device> = Arc::new(FileDevice::open(dir.join(FILE), &options)?.0);
    let memory_bytes = (2 * DIRTY_PAGES) as usize * PAGE_BYTES;
    let volume_bytes = DIRTY_PAGES * SPACING_MAX * PAGE_BYTES as u64;
    let mut options = MappingOptions::new(memory_bytes, volume_bytes);
    options.dirty_share_percent = 90;
    options.modes = MappingModes {
        writeback,
        ..MappingModes::default()
    };
    let mapping = Mapping::new(Arc::clone(&device), options)?;
    let mut bytes = [0; PAGE_BYTES];
    for at in 0..DIRTY_PAGES {
        fill(at, &mut bytes);
        mapping.fresh(PageNo(at * spacing), Priority(2), &bytes)?;
    }
    let meter = Meter::start();
    mapping.sync()?;
    device.flush()?;
    let taken = meter.stop();
    let count = mapping.stats().pages_written;
    Ok((Done { count, taken }, mapping.stats().writes))
}

/// The same by the kernel: pages of its mapping are changed, then the file is synchronised.
///
/// # Errors
/// If the device fails.
pub fn mapped(dir: &Path, spacing: u64) -> anyhow::Result<Done> {
    forget_pages(dir)?;
    let file = File::options()
        .read(true)
        .write(true)
        .open(dir.join(FILE))?;
    let pages = FilePages::new(&file, (DIRTY_PAGES * SPACING_MAX) as usize)?;
    for at in 0..DIRTY_PAGES {
        pages.set_first_word((at * spacing) as usize, at);
    }
    let meter = Meter::start();
    file.sync_data()?;
    Ok(Done {
        count: DIRTY_PAGES,
        taken: meter.stop(),
    })
}
