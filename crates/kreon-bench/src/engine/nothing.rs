//! A store that does nothing but answer rightly: what it costs is what the harness costs.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use super::Engine;
use crate::ycsb::mix::Mix;
use crate::ycsb::record;

/// See the module's text.
pub struct Nothing {
    mix: Mix,
    busy: Duration,
}

impl Nothing {
    /// Answers as if it held every record of `mix`.
    pub fn new(mix: Mix) -> Self {
        Self {
            mix,
            busy: Duration::ZERO,
        }
    }

    /// Keeps the processor busy with each put for so long: what the machine's scheduler and its other work do to
    /// requests of that length.
    pub fn busy(mix: Mix, busy: Duration) -> Self {
        Self { mix, busy }
    }
}

thread_local! {
    static PAIR: RefCell<(Vec<u8>, Vec<u8>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

impl Engine for Nothing {
    fn put(&self, key: &[u8], value: &[u8]) -> anyhow::Result<()> {
        std::hint::black_box((key, value));
        if !self.busy.is_zero() {
            let started = Instant::now();
            while started.elapsed() < self.busy {
                std::hint::spin_loop();
            }
        }
        Ok(())
    }

    fn get(&self, key: &[u8], show: &mut dyn FnMut(&[u8])) -> anyhow::Result<bool> {
        let Some(number) = record::number_of(self.mix, key) else {
            return Ok(false);
        };
        PAIR.with_borrow_mut(|(_, value)| {
            record::value(self.mix, number, 0, value);
            show(value);
        });
        Ok(true)
    }

    fn scan(
        &self,
        start: &[u8],
        count: usize,
        show: &mut dyn FnMut(&[u8], &[u8]),
    ) -> anyhow::Result<usize> {
        let Some(digits) = record::digits_of(self.mix, start) else {
            return Ok(0);
        };
        // The next keys that there could be: one step of the hash apart.
        PAIR.with_borrow_mut(|(key, value)| {
            let mut shown = 0;
            for hashed in (digits..=u64::MAX).take(count) {
                record::key_of_digits(self.mix, hashed, key);
                record::value(self.mix, crate::keys::unhash(hashed), 0, value);
                show(key, value);
                shown += 1;
            }
            Ok(shown)
        })
    }

    fn settle(&self) -> anyhow::Result<()> {
        Ok(())
    }
}
