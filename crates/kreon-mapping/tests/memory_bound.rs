//! The memory that a mapping was given is all that it uses. Alone in its file: it looks at the memory
//! of the whole process.

mod common;

use std::sync::Arc;

use common::Random;
use kreon_base::{PageBytes, PageNo, Priority, Result};
use kreon_device::{Device, DeviceStats, Read, Write};
use kreon_mapping::{Mapping, MappingOptions};

/// A device that keeps nothing.
struct Nowhere(u64);

impl Device for Nowhere {
    fn block_bytes(&self) -> u32 {
        4096
    }
    fn len_bytes(&self) -> u64 {
        self.0
    }
    fn len_bytes_max(&self) -> u64 {
        self.0
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
    fn read(&self, reads: &mut [Read<'_>]) -> Result<()> {
        for read in reads {
            read.buffers.iter_mut().for_each(|buffer| buffer.fill(1));
        }
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

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

#[test]
fn a_mapping_stays_within_its_memory_whatever_is_read_and_written() {
    const MEMORY_BYTES: usize = 24 << 20;
    const VOLUME_BYTES: u64 = 1 << 40;
    // What the allocator, the thread and the code that is paged in take.
    const SLACK_BYTES: usize = 512 << 10;
    let before = resident_bytes();
    let options = MappingOptions::new(MEMORY_BYTES, 16 << 40);
    let mapping = Mapping::new(Arc::new(Nowhere(VOLUME_BYTES)), options).unwrap();
    assert!(mapping.memory_bytes() <= MEMORY_BYTES);
    let at_once = resident_bytes() - before;
    assert!(
        at_once > MEMORY_BYTES / 10 * 9,
        "{at_once}: not reserved at the start"
    );
    let mut random = Random(1);
    let bytes: Box<PageBytes> = Box::new([2; 4096]);
    for round in 0..100_000 {
        let page = random.below(VOLUME_BYTES / 4096);
        match random.below(4) {
            0 => mapping.fresh(PageNo(page), Priority(1), &bytes).unwrap(),
            _ => mapping.read(common::any(page), |_| ()).unwrap(),
        }
        if round % 5000 == 0 {
            let used = resident_bytes() - before;
            assert!(
                used <= MEMORY_BYTES + SLACK_BYTES,
                "{used} of {MEMORY_BYTES}"
            );
            assert!(mapping.stats().memory_bytes <= MEMORY_BYTES as u64);
        }
    }
    let stats = mapping.stats();
    assert!(stats.stripes_emptied > 0, "{stats:?}");
    println!(
        "{} bytes at the start, {} at the end, {stats:?}",
        at_once,
        resident_bytes() - before
    );
    drop(mapping);
    assert!(
        resident_bytes() < before + (4 << 20),
        "memory was not given back"
    );
}
