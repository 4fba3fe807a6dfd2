//! Writing rows: at once if they come sorted, else in batches.

use kreon::{Durability, Region, Store, WriteBatch};

use crate::failure::Result;
use crate::session::Session;

/// A batch is also written when it holds so many bytes: memory stays bounded whatever the rows are.
pub const BATCH_BYTES_MAX: usize = 1 << 20;

/// Rows on their way into a region.
pub struct Load {
    store: Store,
    region: Region,
    durability: Durability,
    batch_rows_max: usize,
    batch: WriteBatch,
    batch_bytes: usize,
    rows_written: u64,
    /// Of these, rows that came sorted and were loaded at once.
    pub rows_loaded: u64,
    /// A load was broken off: nothing of it is in the store.
    pub is_undone: bool,
}

impl Load {
    pub fn new(session: &Session, batch_rows_max: usize) -> Result<Self> {
        Ok(Self {
            store: session.store.clone(),
            region: session.region()?,
            durability: session.durability,
            batch_rows_max,
            batch: WriteBatch::new(),
            batch_bytes: 0,
            rows_written: 0,
            rows_loaded: 0,
            is_undone: false,
        })
    }

    /// Adds a row. Rows are written in order, so that of equal keys the last wins.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if value.len() >= BATCH_BYTES_MAX {
            // By itself, from where it stands: a batch would copy it.
            self.write_batch()?;
            self.region.put_with(key, value, self.durability)?;
            self.rows_written += 1;
            return Ok(());
        }
        self.batch.put(&self.region, key, value);
        self.batch_bytes += key.len() + value.len();
        if self.batch.len() >= self.batch_rows_max || self.batch_bytes >= BATCH_BYTES_MAX {
            self.write_batch()?;
        }
        Ok(())
    }

    /// Loads pairs that ascend, all or none. Nothing was put before.
    pub fn load(
        &self,
        pairs: impl Iterator<Item = kreon::Result<(Vec<u8>, Vec<u8>)>>,
    ) -> kreon::Result<()> {
        self.region.try_ingest(pairs).map(drop)
    }

    /// The pairs that were loaded came from so many rows.
    pub fn count_loaded(&mut self, rows: u64) {
        self.rows_loaded += rows;
        self.rows_written += rows;
    }

    /// How many rows make a batch.
    pub fn batch_rows_max(&self) -> usize {
        self.batch_rows_max
    }

    /// Writes what is left and makes everything durable. Returns the rows written.
    pub fn finish(&mut self) -> Result<u64> {
        self.write_batch()?;
        self.store.sync()?;
        Ok(self.rows_written)
    }

    fn write_batch(&mut self) -> Result<()> {
        let batch = std::mem::take(&mut self.batch);
        self.batch_bytes = 0;
        let rows = batch.len() as u64;
        if rows > 0 {
            self.store.write(batch, self.durability)?;
            self.rows_written += rows;
        }
        Ok(())
    }
}
