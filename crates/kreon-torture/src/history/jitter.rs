//! A device that takes its time now and then, so that threads meet at many places.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kreon_base::Result;
use kreon_device::{Device, DeviceStats, Read, Write};
use kreon_sim::Dice;

/// See the module's text.
pub struct Jitter {
    under: Arc<dyn Device>,
    seed: u64,
    calls: AtomicU64,
}

impl Jitter {
    /// Over `under`.
    pub fn new(under: Arc<dyn Device>, seed: u64) -> Self {
        Self {
            under,
            seed,
            calls: AtomicU64::new(0),
        }
    }

    fn pause(&self) {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let mut dice = Dice::new(self.seed ^ call.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        match dice.below(16) {
            0 => std::thread::sleep(Duration::from_micros(dice.below(300))),
            1..5 => std::thread::yield_now(),
            _ => {}
        }
    }
}

impl Device for Jitter {
    fn block_bytes(&self) -> u32 {
        self.under.block_bytes()
    }

    fn len_bytes(&self) -> u64 {
        self.under.len_bytes()
    }

    fn len_bytes_max(&self) -> u64 {
        self.under.len_bytes_max()
    }

    fn grow(&self, len_bytes: u64) -> Result<()> {
        self.under.grow(len_bytes)
    }

    fn allocate(&self, offset: u64, len_bytes: u64) -> Result<()> {
        self.pause();
        self.under.allocate(offset, len_bytes)
    }

    fn discard(&self, offset: u64, len_bytes: u64) -> Result<()> {
        self.pause();
        self.under.discard(offset, len_bytes)
    }

    fn read(&self, reads: &mut [Read<'_>]) -> Result<()> {
        self.pause();
        let outcome = self.under.read(reads);
        self.pause();
        outcome
    }

    fn write(&self, writes: &[Write<'_>]) -> Result<()> {
        self.pause();
        let outcome = self.under.write(writes);
        self.pause();
        outcome
    }

    fn flush(&self) -> Result<()> {
        self.pause();
        let outcome = self.under.flush();
        self.pause();
        outcome
    }

    fn stats(&self) -> DeviceStats {
        self.under.stats()
    }

    fn unlock(&self) -> Result<()> {
        self.under.unlock()
    }
}
