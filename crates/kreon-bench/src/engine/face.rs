//! The face that all stores have for the bench.

use serde::{Deserialize, Serialize};

use crate::randomness::Randomness;

/// A store under measurement. Clients on many threads share it.
pub trait Engine: Send + Sync {
    /// Inserts or overwrites a record, as durable as the means say.
    fn put(&self, key: &[u8], value: &[u8]) -> anyhow::Result<()>;

    /// Shows the value of `key`; whether there is one.
    fn get(&self, key: &[u8], show: &mut dyn FnMut(&[u8])) -> anyhow::Result<bool>;

    /// Shows the values of `keys`, each with the number of its key; how many keys have one. Stores that can, ask the
    /// device for all of them at once.
    fn get_many(
        &self,
        keys: &[Vec<u8>],
        show: &mut dyn FnMut(usize, &[u8]),
    ) -> anyhow::Result<usize> {
        let mut found = 0;
        for (number, key) in keys.iter().enumerate() {
            found += usize::from(self.get(key, &mut |value| show(number, value))?);
        }
        Ok(found)
    }

    /// Shows up to `count` records from `start` on, in order of their keys; how many there were.
    fn scan(
        &self,
        start: &[u8],
        count: usize,
        show: &mut dyn FnMut(&[u8], &[u8]),
    ) -> anyhow::Result<usize>;

    /// Ends the background work that the requests so far left behind, and makes everything durable: it belongs to
    /// their cost.
    fn settle(&self) -> anyhow::Result<()>;

    /// Makes all requests so far durable, and leaves the background work for later.
    fn persist(&self) -> anyhow::Result<()> {
        self.settle()
    }

    /// Bytes of the log that an opening after a crash would have to replay now, if the store can tell.
    fn replay_bytes(&self) -> Option<u64> {
        None
    }

    /// How random the device transfers since the last call were, if the store can tell.
    fn take_randomness(&self) -> Option<Randomness> {
        None
    }

    /// Inserts or overwrites records together, as one batch that nobody waits for.
    fn write_buffered(&self, pairs: &[(Vec<u8>, Vec<u8>)]) -> anyhow::Result<()> {
        let _ = pairs;
        anyhow::bail!("no batches of this store are measured")
    }

    /// What it asked of the file system since it was opened, if the store can tell.
    fn asked(&self) -> Option<Asked> {
        None
    }

    /// What its searches in leaves read since it was opened, if it has such leaves.
    fn searches(&self) -> Option<Searches> {
        None
    }

    /// Where its space is, and what it wrote since it was opened, if the store can tell.
    fn inside(&self) -> Option<Inside> {
        None
    }
}

/// What a store asked of the file system, beside reads and writes of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Calls of `fallocate` for more space.
    pub allocations: u64,
    /// Flushes.
    pub flushes: u64,
    /// Bytes of zeroes written ahead of a log.
    pub zeroed_bytes: u64,
}

/// What a store whose leaves have no keys read of keys to find its way in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Searches {
    /// Searches for the place of a new key.
    pub inserts: u64,
    /// Those that read keys, because prefixes were equal.
    pub inserts_that_read: u64,
    /// Records that were read because their hash is that of the key.
    pub reads_by_hash: u64,
    /// Those with another key.
    pub reads_of_other_keys: u64,
}

impl Searches {
    /// What was done since `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            inserts: self.inserts - before.inserts,
            inserts_that_read: self.inserts_that_read - before.inserts_that_read,
            reads_by_hash: self.reads_by_hash - before.reads_by_hash,
            reads_of_other_keys: self.reads_of_other_keys - before.reads_of_other_keys,
        }
    }

    /// Inserts that found their place by prefixes alone, in percent; `None` without any.
    pub fn by_prefix_percent(self) -> Option<f64> {
        percent(
            self.inserts.saturating_sub(self.inserts_that_read),
            self.inserts,
        )
    }

    /// Reads that got the record which was looked for, in percent; `None` without any.
    pub fn by_hash_percent(self) -> Option<f64> {
        percent(
            self.reads_by_hash.saturating_sub(self.reads_of_other_keys),
            self.reads_by_hash,
        )
    }
}

fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 * 100.0 / whole as f64)
}

/// What a store says of itself, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inside {
    /// Length of the volume.
    pub volume_bytes: u64,
    /// Free within the volume, backed by blocks or not.
    pub free_bytes: u64,
    /// Segments of the log.
    pub log_bytes: u64,
    /// Of this, what the index points at.
    pub log_live_bytes: u64,
    /// Pages of the index.
    pub index_bytes: u64,
    /// Written to the device.
    pub write_bytes: u64,
    /// Of this, pages: the index, above all.
    pub page_write_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_searches_are_those_since_the_last_look() {
        let before = Searches {
            inserts: 10,
            inserts_that_read: 10,
            reads_by_hash: 5,
            reads_of_other_keys: 5,
        };
        let after = Searches {
            inserts: 14,
            inserts_that_read: 11,
            reads_by_hash: 105,
            reads_of_other_keys: 6,
        };
        let done = after.since(before);
        assert_eq!(done.by_prefix_percent(), Some(75.0));
        assert_eq!(done.by_hash_percent(), Some(99.0));
        assert_eq!(Searches::default().by_prefix_percent(), None);
        assert_eq!(Searches::default().by_hash_percent(), None);
    }
}
