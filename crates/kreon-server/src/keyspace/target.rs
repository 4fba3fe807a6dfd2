//! What writes of records go into: a batch, or a transaction.

use std::time::SystemTime;

use kreon::{Region, Transaction, WriteBatch};

/// Takes writes, in the order of their effect.
pub(super) trait Target {
    /// Sets a record, which ends at `end` if one is given.
    fn put(
        &mut self,
        region: &Region,
        key: &[u8],
        value: &[u8],
        end: Option<SystemTime>,
    ) -> kreon::Result<()>;

    fn delete(&mut self, region: &Region, key: &[u8]) -> kreon::Result<()>;

    /// Deletes the records from `start` on, below `end`.
    fn delete_range(&mut self, region: &Region, start: &[u8], end: &[u8]) -> kreon::Result<()>;
}

impl Target for WriteBatch {
    fn put(
        &mut self,
        region: &Region,
        key: &[u8],
        value: &[u8],
        end: Option<SystemTime>,
    ) -> kreon::Result<()> {
        match end {
            None => self.put(region, key, value),
            Some(end) => self.put_until(region, key, value, end),
        }
        Ok(())
    }

    fn delete(&mut self, region: &Region, key: &[u8]) -> kreon::Result<()> {
        self.delete(region, key);
        Ok(())
    }

    fn delete_range(&mut self, region: &Region, start: &[u8], end: &[u8]) -> kreon::Result<()> {
        self.delete_range(region, start..end)
    }
}

impl Target for Transaction {
    fn put(
        &mut self,
        region: &Region,
        key: &[u8],
        value: &[u8],
        end: Option<SystemTime>,
    ) -> kreon::Result<()> {
        match end {
            None => self.put(region, key, value),
            Some(end) => self.put_until(region, key, value, end),
        }
    }

    fn delete(&mut self, region: &Region, key: &[u8]) -> kreon::Result<()> {
        self.delete(region, key)
    }

    fn delete_range(&mut self, region: &Region, start: &[u8], end: &[u8]) -> kreon::Result<()> {
        self.delete_range(region, start..end)
    }
}
