//! Writing rows: at once if they come sorted, else in batches.

use kreon::Durability;

use crate::failure::Result;
use crate::lifetime::moment_of_ms;
use crate::place::{Batch, Place, Region};
use crate::rows::Pair;
use crate::session::Session;

/// A batch is also written when it holds so many bytes: memory stays bounded whatever the rows are.
pub const BATCH_BYTES_MAX: usize = 1 << 20;

/// Rows on their way into a region.
pub struct Load {
    place: Place,
    region: Region,
    durability: Durability,
    batch_rows_max: usize,
    batch: Batch,
    batch_bytes: usize,
    rows_written: u64,
    /// Of these, rows that came sorted and were loaded at once.
    pub rows_loaded: u64,
    /// A load was broken off: nothing of it is in the store.
    pub is_undone: bool,
}

impl Load {
    pub fn new(session: &Session, batch_rows_max: usize) -> Result<Self> {
        let region = session.region()?;
        Ok(Self {
            place: session.place.clone(),
            batch: region.batch(),
            region,
            durability: session.durability,
            batch_rows_max,
            batch_bytes: 0,
            rows_written: 0,
            rows_loaded: 0,
            is_undone: false,
        })
    }

    /// Adds a row. Rows are written in order, so that of equal keys the last wins.
    ///
    /// # Errors
    /// Those of the place. Wrong use for a row that expires, in a cluster.
    pub fn put(&mut self, pair: &Pair) -> Result<()> {
        let (key, value) = (pair.key.as_slice(), pair.value.as_slice());
        if value.len() >= BATCH_BYTES_MAX && pair.expires_ms.is_none() {
            // By itself, from where it stands: a batch would copy it.
            self.write_batch()?;
            self.region.put(key, value, self.durability)?;
            self.rows_written += 1;
            return Ok(());
        }
        let expires = pair.expires_ms.map(moment_of_ms);
        self.region.add(&mut self.batch, (key, value), expires)?;
        self.batch_bytes += key.len() + value.len();
        if self.batch.len() >= self.batch_rows_max || self.batch_bytes >= BATCH_BYTES_MAX {
            self.write_batch()?;
        }
        Ok(())
    }

    /// Whether pairs that ascend can be loaded at once.
    pub fn loads_at_once(&self) -> bool {
        self.region.loads_at_once()
    }

    /// Loads pairs that ascend, all or none. Nothing was put before.
    pub fn load(
        &self,
        pairs: impl Iterator<Item = kreon::Result<(Vec<u8>, Vec<u8>)>>,
    ) -> kreon::Result<()> {
        self.region.ingest(pairs)
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
        self.place.sync()?;
        Ok(self.rows_written)
    }

    fn write_batch(&mut self) -> Result<()> {
        let batch = std::mem::replace(&mut self.batch, self.region.batch());
        self.batch_bytes = 0;
        let rows = batch.len() as u64;
        if rows > 0 {
            self.place.write(batch, self.durability)?;
            self.rows_written += rows;
        }
        Ok(())
    }
}
