//! Who writes. Each writer has records of its own, every n-th: so the version that a record must have in the end is
//! known exactly, without a lock around the store.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use hdrhistogram::Histogram;

use crate::engine::Engine;
use crate::keys::hash;
use crate::ycsb::choice::Chooser;
use crate::ycsb::client::{Done, latencies};
use crate::ycsb::mix::Mix;
use crate::ycsb::record;

/// See the module's text.
pub struct Writer<'a> {
    engine: &'a dyn Engine,
    mix: Mix,
    /// Of all records, which are numbered from 0.
    records: u64,
    /// Writer `number` of `of` owns the records whose number leaves that remainder.
    number: u64,
    of: u64,
    draws: u64,
    key: Vec<u8>,
    value: Vec<u8>,
    /// Of its records in their order: how often each was overwritten.
    pub versions: Vec<u32>,
    /// Latencies of the overwrites, in ns.
    pub latencies: Histogram<u64>,
    /// Bytes of keys and values that were given to the store behind the load.
    pub given_bytes: u64,
}

impl<'a> Writer<'a> {
    /// Writer `number` of `of`.
    pub fn new(
        engine: &'a dyn Engine,
        mix: Mix,
        records: u64,
        (number, of): (u64, u64),
        seed: u64,
    ) -> anyhow::Result<Self> {
        let own = records / of + u64::from(number < records % of);
        Ok(Self {
            engine,
            mix,
            records,
            number,
            of,
            draws: hash(seed ^ number << 48),
            key: Vec::new(),
            value: Vec::new(),
            versions: vec![0; own as usize],
            latencies: latencies()?,
            given_bytes: 0,
        })
    }

    /// Writes each of its records once; the bytes of their keys and values.
    ///
    /// # Errors
    /// Of the store.
    pub fn load(&mut self) -> anyhow::Result<u64> {
        let mut bytes = 0;
        for at in 0..self.versions.len() as u64 {
            self.make(at * self.of + self.number, 0);
            self.engine.put(&self.key, &self.value)?;
            bytes += self.pair_bytes();
        }
        Ok(bytes)
    }

    /// Overwrites `count` times, or less often if the time is up.
    ///
    /// # Errors
    /// Of the store.
    pub fn overwrite(
        &mut self,
        count: u64,
        chooser: &Chooser,
        done: &Done,
        stop: &AtomicBool,
    ) -> anyhow::Result<()> {
        for so_far in 1..=count {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let number = self.choose(chooser);
            let at = (number / self.of) as usize;
            self.make(number, self.versions[at] + 1);
            let started = Instant::now();
            self.engine.put(&self.key, &self.value)?;
            let ns = started.elapsed().as_nanos() as u64;
            self.latencies.saturating_record(ns.max(1));
            self.versions[at] += 1;
            self.given_bytes += self.pair_bytes();
            done.0.store(so_far, Ordering::Relaxed);
        }
        Ok(())
    }

    /// One of its own records: as the chooser chooses of all, those of others passed over.
    fn choose(&mut self, chooser: &Chooser) -> u64 {
        loop {
            self.draws = self.draws.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let uniform = (hash(self.draws) >> 11) as f64 / (1u64 << 53) as f64;
            let number = chooser.choose(self.records, uniform);
            if number % self.of == self.number {
                return number;
            }
        }
    }

    fn make(&mut self, number: u64, version: u32) {
        record::key(self.mix, number, &mut self.key);
        record::value(self.mix, number, version, &mut self.value);
    }

    fn pair_bytes(&self) -> u64 {
        (self.key.len() + self.value.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Kind;
    use crate::engine::tuning::Means;
    use crate::ycsb::choice::Distribution;

    #[test]
    fn writers_own_all_records_between_them_and_write_no_others() {
        let dir = std::env::temp_dir();
        let engine = Kind::Nothing.open(&dir, &Means::default()).unwrap();
        for distribution in [Distribution::Uniform, Distribution::TrueZipfian] {
            let chooser = Chooser::new(distribution, 103);
            let mut owned = 0;
            for number in 0..3 {
                let mut writer = Writer::new(engine.as_ref(), Mix::K, 103, (number, 3), 1).unwrap();
                owned += writer.versions.len();
                for _ in 0..2000 {
                    assert_eq!(writer.choose(&chooser) % 3, number);
                }
                let (done, stop) = (Done::default(), AtomicBool::new(false));
                writer.overwrite(500, &chooser, &done, &stop).unwrap();
                assert_eq!(writer.versions.iter().sum::<u32>(), 500);
                assert_eq!(writer.given_bytes, 500 * 1030);
                assert_eq!(done.0.load(Ordering::Relaxed), 500);
            }
            assert_eq!(owned, 103);
        }
    }
}
