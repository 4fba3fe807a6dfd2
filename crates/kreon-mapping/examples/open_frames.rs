//! What it costs to publish a page that was filled in place, beside `fresh`, which copies it.
//!
//! `cargo run --release -p kreon-mapping --example open_frames [rounds]`
//!
//! Each round makes the same pages both ways, in a random order known in advance, in a mapping with room for all; nothing
//! is evicted or written back. Processor time of this thread; medians of the rounds, which go by turns.

use std::sync::Arc;
use std::time::Duration;

use kreon_base::{PAGE_BYTES, PageBytes, PageNo, Priority, Result};
use kreon_device::{Device, DeviceStats, Read, Write};
use kreon_mapping::{Mapping, MappingOptions, OpenFrame};
use rustix::time::{ClockId, clock_gettime};

const PAGES: usize = 16_384;
const PRIORITY: Priority = Priority(2);

/// A device that takes everything and keeps nothing.
struct Nothing;

impl Device for Nothing {
    fn block_bytes(&self) -> u32 {
        4096
    }
    fn len_bytes(&self) -> u64 {
        (PAGES * PAGE_BYTES) as u64
    }
    fn len_bytes_max(&self) -> u64 {
        self.len_bytes()
    }
    fn grow(&self, _: u64) -> Result<()> {
        Ok(())
    }
    fn allocate(&self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }
    fn discard(&self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }
    fn read(&self, _: &mut [Read<'_>]) -> Result<()> {
        Ok(())
    }
    fn write(&self, _: &[Write<'_>]) -> Result<()> {
        Ok(())
    }
    fn flush(&self) -> Result<()> {
        Ok(())
    }
    fn stats(&self) -> DeviceStats {
        DeviceStats::default()
    }
}

fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Processor time of `work` in ns for each of the pages.
fn measured(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = thread_cpu();
    work()?;
    Ok((thread_cpu() - start).as_nanos() as f64 / PAGES as f64)
}

fn shuffled() -> Vec<PageNo> {
    let mut pages: Vec<_> = (0..PAGES as u64).map(PageNo).collect();
    let mut state = 1_u64;
    for i in (1..PAGES).rev() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        pages.swap(i, (state >> 33) as usize % (i + 1));
    }
    pages
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<()> {
    let rounds = std::env::args()
        .nth(1)
        .map_or(31, |text| text.parse().expect("rounds"));
    // Half of the frames may be open, and half of them dirty: room for all pages twice, and then some.
    let memory_bytes = 5 * PAGES * PAGE_BYTES / 2;
    let mut options = MappingOptions::new(memory_bytes, (PAGES * PAGE_BYTES) as u64);
    options.dirty_share_percent = 90;
    let mapping = Arc::new(Mapping::new(Arc::new(Nothing), options)?);
    assert!(mapping.open_frames_max() >= PAGES);
    let order = shuffled();
    let content: PageBytes = [7; PAGE_BYTES];
    let names = ["fresh", "open_frame", "publish"];
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..rounds {
        times[0].push(measured(|| {
            let mut pages = order.iter();
            pages.try_for_each(|&page| mapping.fresh(page, PRIORITY, &content))
        })?);
        mapping.discard(PageNo(0), PAGES as u64);
        let mut open: Vec<OpenFrame> = Vec::with_capacity(PAGES);
        times[1].push(measured(|| {
            open.extend(order.iter().filter_map(|_| mapping.open_frame()));
            Ok(())
        })?);
        assert_eq!(open.len(), PAGES);
        for frame in &mut open {
            frame.copy_from_slice(&content);
        }
        times[2].push(measured(|| {
            let mut pages = order.iter().zip(open);
            pages.try_for_each(|(&page, frame)| mapping.publish(page, PRIORITY, frame))
        })?);
        assert_eq!(mapping.resident_pages(), PAGES as u64);
        mapping.discard(PageNo(0), PAGES as u64);
    }
    assert_eq!(mapping.stats().writes, 0, "nothing was written back");
    for (name, times) in names.into_iter().zip(times) {
        println!("{name:12} {:7.1} ns a page", median(times));
    }
    Ok(())
}
