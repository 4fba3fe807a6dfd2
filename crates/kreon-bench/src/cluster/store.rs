//! A store with several copies of everything, as this bench uses it.

use std::ops::Range;
use std::time::Instant;

use anyhow::Result;

use super::processes::Servers;
use crate::keys::{fill, hash, key};

/// A store with several copies of everything, and its client.
pub trait Store {
    /// Its name with its version, and what an acknowledgement says.
    fn name(&self) -> &str;

    /// Its processes.
    fn servers(&self) -> &Servers;

    /// One put, which returns when it is acknowledged.
    ///
    /// # Errors
    /// Of the store.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// One get; whether there is a value.
    ///
    /// # Errors
    /// Of the store.
    fn get(&mut self, key: &[u8]) -> Result<bool>;

    /// Puts of what `load` says until it ends; how many were acknowledged.
    ///
    /// # Errors
    /// Of the store.
    fn puts(&mut self, load: &Load) -> Result<u64>;

    /// Gets, likewise.
    ///
    /// # Errors
    /// Of the store; a value is missing.
    fn gets(&mut self, load: &Load) -> Result<u64>;
}

/// Many calls.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Calls under way.
    pub depth: u64,
    /// Records: call number n is about one of them.
    pub records: u64,
    pub value_bytes: usize,
    /// In the order of their numbers, once each; otherwise in no order.
    pub is_in_order: bool,
    pub end: End,
}

/// When many calls end.
#[derive(Clone, Copy, Debug)]
pub enum End {
    At(Instant),
    /// After so many.
    After(u64),
}

impl Load {
    /// Whether there is no call number `n` any more. Looks at the clock now and then only.
    pub fn is_over(&self, n: u64) -> bool {
        match self.end {
            End::At(end) => n.is_multiple_of(64) && Instant::now() >= end,
            End::After(count) => n >= count,
        }
    }

    /// The calls from `first` on that are to be made together, `count` unless the load ends before; empty: it is over.
    #[cfg_attr(
        not(any(test, feature = "redis")),
        expect(dead_code, reason = "kreon wants no batches")
    )]
    pub fn batch(&self, first: u64, count: u64) -> Range<u64> {
        let end = match self.end {
            End::At(end) if Instant::now() >= end => first,
            End::At(_) => first + count,
            End::After(all) => (first + count).min(all),
        };
        first.min(end)..end
    }

    /// The record that call number `n` is about.
    pub fn record(&self, n: u64) -> u64 {
        match self.is_in_order {
            true => n % self.records,
            false => hash(n) % self.records,
        }
    }

    /// Its key.
    pub fn key(&self, n: u64, name: &mut Vec<u8>) {
        key(self.record(n), name);
    }

    /// And its value.
    pub fn pair(&self, n: u64, name: &mut Vec<u8>, value: &mut Vec<u8>) {
        self.key(n, name);
        if value.len() != self.value_bytes {
            value.resize(self.value_bytes, 0);
            fill(0, value);
        }
        // The rest stays as it is: making values is no part of a put.
        if let Some(first) = value.first_chunk_mut() {
            *first = self.record(n).to_le_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(is_in_order: bool, end: End) -> Load {
        Load {
            depth: 4,
            records: 10,
            value_bytes: 16,
            is_in_order,
            end,
        }
    }

    #[test]
    fn a_load_in_order_meets_each_record_and_ends_after_its_count() {
        let load = load(true, End::After(10));
        let met: Vec<u64> = (0..).take_while(|n| !load.is_over(*n)).collect();
        assert_eq!(met, (0..10).collect::<Vec<_>>());
        let mut records: Vec<u64> = met.iter().map(|n| load.record(*n)).collect();
        records.sort_unstable();
        records.dedup();
        assert_eq!(records.len(), 10);
    }

    #[test]
    fn batches_end_with_the_load() {
        let counted = load(true, End::After(10));
        assert_eq!(counted.batch(0, 4), 0..4);
        assert_eq!(counted.batch(8, 4), 8..10);
        assert!(counted.batch(12, 4).is_empty());
        let timed = load(true, End::At(Instant::now()));
        assert!(timed.batch(0, 4).is_empty(), "its time is over");
    }

    #[test]
    fn a_load_in_no_order_stays_among_the_records_and_its_values_tell_them() {
        let load = load(false, End::At(Instant::now()));
        assert!(load.is_over(0), "its time is over");
        let (mut name, mut value) = (Vec::new(), Vec::new());
        for n in 0..100 {
            load.pair(n, &mut name, &mut value);
            assert!(load.record(n) < 10);
            assert_eq!(crate::keys::number(&value), Some(load.record(n)));
        }
    }
}
