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

/// Makes the number at the end of `key` one higher: formatting it anew costs as much as the harness's checks.
fn count_up(key: &mut [u8]) {
    for digit in key.iter_mut().rev() {
        match *digit {
            b'9' => *digit = b'0',
            b'0'..=b'8' => {
                *digit += 1;
                return;
            }
            _ => return,
        }
    }
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
            key.clear();
            key.extend_from_slice(start);
            let mut shown = 0;
            for hashed in (digits..=u64::MAX).take(count) {
                record::value(self.mix, crate::keys::unhash(hashed), 0, value);
                show(key, value);
                count_up(key);
                shown += 1;
            }
            Ok(shown)
        })
    }

    fn settle(&self) -> anyhow::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_up_carries() {
        for (before, after) in [
            ("user0018", "user0019"),
            ("user0199", "user0200"),
            ("user99", "user00"),
        ] {
            let mut key = before.as_bytes().to_vec();
            count_up(&mut key);
            assert_eq!(key, after.as_bytes());
        }
    }
}
