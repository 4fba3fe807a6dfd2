//! What it costs to bring sorted pages of which every so many is wanted, as a spill does with its leaves.
//!
//! `cargo run --release -p kreon-mapping --example prefetch_cost -- FILE`

use std::sync::Arc;
use std::time::{Duration, Instant};

use kreon_base::{PageBytes, PageNo, Priority, Result};
use kreon_device::{Device, FileDevice, FileOptions};
use kreon_mapping::{Mapping, MappingOptions, PageRequest};
use rustix::time::{ClockId, clock_gettime};

const PAGES: usize = 30_000;
const ROUND_PAGES: usize = 128;

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn main() -> Result<()> {
    let path = std::env::args().nth(1).expect("a file of 2 GB");
    let options = FileOptions {
        read_only: true,
        ..FileOptions::default()
    };
    let (device, _) = FileDevice::open(path, &options)?;
    let volume_bytes = device.len_bytes();
    let mapping = Mapping::new(
        Arc::new(device),
        MappingOptions::new(256 << 20, volume_bytes),
    )?;
    let unchecked = |_: &PageBytes| Ok(());
    let mut random = 7_u64;
    for one_in in [1, 2, 4, 8, 16] {
        let mut page = random % 1000;
        let requests: Vec<_> = (0..PAGES)
            .map(|_| {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                // Gaps of all lengths, as long on average as it says.
                page = (page + 1 + (random >> 33) % (2 * one_in - 1)) % (volume_bytes / 4096);
                PageRequest {
                    page: PageNo(page),
                    priority: Priority(2),
                    check: &unchecked,
                }
            })
            .collect();
        mapping.discard(PageNo(0), volume_bytes / 4096);
        let (start, cpu_start) = (Instant::now(), cpu());
        for round in requests.chunks(ROUND_PAGES) {
            mapping.prefetch(round)?;
        }
        println!(
            "one page in {one_in:2}: {:5.2} CPU us a page, {:7.0} pages/s",
            (cpu() - cpu_start).as_secs_f64() * 1e6 / PAGES as f64,
            PAGES as f64 / start.elapsed().as_secs_f64()
        );
    }
    Ok(())
}
