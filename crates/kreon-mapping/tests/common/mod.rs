//! A device in memory that can be slow, can fail, and watches what it is asked to do.
#![allow(dead_code, unused_imports, reason = "each test file uses its part")]

pub mod content;
pub mod device;
pub mod slow;

pub use content::{Content, fill, verify};
pub use device::MemoryDevice;

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::thread;

use kreon_base::{PageBytes, PageNo, Priority, Result};
use kreon_device::Device;
use kreon_mapping::{Mapping, MappingOptions, PageRequest};

/// Longest volume of the tests unless they say otherwise: 64 stripes of the page array.
pub const VOLUME_BYTES: u64 = 256 << 20;

/// A small pseudo-random generator (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        content::mix(self.0)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// A mapping of exactly `frames` frames.
pub fn mapping_with_frames(device: &Arc<MemoryDevice>, frames: u64) -> Mapping {
    mapping_with(device, frames, |_| {})
}

/// A mapping of exactly `frames` frames, options changed by `change`.
pub fn mapping_with(
    device: &Arc<MemoryDevice>,
    frames: u64,
    change: impl Fn(&mut MappingOptions),
) -> Mapping {
    let mut memory_bytes = frames as usize * 4096;
    loop {
        let mut options = MappingOptions::new(memory_bytes, VOLUME_BYTES);
        options.shards = 4;
        change(&mut options);
        match Mapping::new(Arc::clone(device) as Arc<dyn Device>, options) {
            Ok(mapping) if mapping.stats().frames >= frames => {
                assert_eq!(mapping.stats().frames, frames);
                return mapping;
            }
            _ => memory_bytes += 2048,
        }
    }
}

/// A request that takes any bytes.
pub fn any(page: u64) -> PageRequest<'static> {
    PageRequest {
        page: PageNo(page),
        priority: Priority(2),
        check: &|_| Ok(()),
    }
}

/// The version of a page, read through the mapping and verified whole.
pub fn version(mapping: &Mapping, page: u64) -> Result<u64> {
    mapping.read(any(page), |bytes| verify(page, bytes).expect("content"))
}

/// Makes version `version` of a page.
pub fn fresh(mapping: &Mapping, page: u64, version: u64) -> Result<()> {
    let bytes: Box<PageBytes> = fill(page, version);
    mapping.fresh(PageNo(page), Priority(2), &bytes)
}

/// Runs `during` while readers hold pages 0 to 63, and with them every frame of a mapping of 64. They
/// let go when `during` says so, or at its end.
pub fn while_every_frame_is_held(mapping: &Mapping, during: impl FnOnce(&dyn Fn())) {
    /// Reads pages nested, as deep as a thread has pins.
    fn hold(mapping: &Mapping, page: u64, left: u64, wait: &dyn Fn()) {
        let deeper = |bytes: &PageBytes| {
            match left {
                1 => wait(),
                _ => hold(mapping, page + 1, left - 1, wait),
            }
            verify(page, bytes).expect("content");
        };
        mapping.read(any(page), deeper).expect("a held page");
    }
    let held = Barrier::new(9);
    let release = AtomicBool::new(false);
    thread::scope(|scope| {
        for number in 0..8 {
            let (held, release) = (&held, &release);
            scope.spawn(move || {
                hold(mapping, number * 8, 8, &|| {
                    held.wait();
                    while !release.load(SeqCst) {
                        thread::yield_now();
                    }
                });
            });
        }
        held.wait();
        during(&|| release.store(true, SeqCst));
        release.store(true, SeqCst);
    });
}
