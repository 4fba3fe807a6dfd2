//! Batches: changes that are applied atomically.

use std::time::Duration;

use kreon_base::Timestamp;
use kreon_engine::DeletedRange;

use crate::{KeyRange, Region, Result};

/// Changes that [`Store::write`](crate::Store::write) applies atomically: readers and crashes see all of them or none.
/// A later change of a key wins over an earlier one. The batch holds copies of keys and values, in memory outside the
/// store's budget, until it is written: write long values by single puts.
///
/// ```
/// # fn main() -> kreon::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let store = kreon::Store::open(folder.path().join("store"))?;
/// let (cities, towns) = (store.region("cities")?, store.region("towns")?);
/// towns.put("agios", "1000")?;
/// let mut batch = kreon::WriteBatch::new();
/// batch.put(&cities, "agios", "1000");
/// batch.delete(&towns, "agios");
/// store.write(batch, kreon::Durability::Sync)?;
/// assert!(cities.contains("agios")? && !towns.contains("agios")?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct WriteBatch {
    pub(crate) changes: Vec<BatchChange>,
    /// Keys and values, concatenated in the order of `changes`.
    pub(crate) bytes: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct BatchChange {
    pub region: Region,
    pub key_bytes: usize,
    /// `None`: a deletion.
    pub value_bytes: Option<usize>,
    /// A range deletion: the key is the start of the range, the value its end.
    pub is_range: bool,
    /// When the value ends; `None`: with the next write.
    pub ends: Option<Ends>,
}

/// When a value ends that a batch puts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ends {
    /// So long after the write.
    After(Duration),
    At(Timestamp),
}

impl WriteBatch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a put of `value` for `key` in `region`.
    pub fn put(&mut self, region: &Region, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.add(region, key.as_ref(), Some(value.as_ref()), false);
    }

    /// Adds a deletion of `key` in `region`.
    pub fn delete(&mut self, region: &Region, key: impl AsRef<[u8]>) {
        self.add(region, key.as_ref(), None, false);
    }

    /// Adds a deletion of all keys of a range in `region`, including those that this batch has put so far. See
    /// [`Region::delete_range`].
    ///
    /// ```
    /// # fn main() -> kreon::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let store = kreon::Store::open(folder.path().join("store"))?;
    /// let region = store.region("r")?;
    /// region.put("old", "1")?;
    /// let mut batch = kreon::WriteBatch::new();
    /// batch.delete_range(&region, ..)?;
    /// batch.put(&region, "new", "2");
    /// store.write(batch, kreon::Durability::Buffered)?;
    /// assert_eq!(region.iter().keys().collect::<Result<Vec<_>, _>>()?, [b"new"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` for a bound over 64 KiB; the batch is unchanged.
    pub fn delete_range(&mut self, region: &Region, range: impl KeyRange) -> Result<()> {
        if let Some(range) = DeletedRange::of(range.into_bounds())? {
            self.add(region, range.start(), Some(range.end()), true);
        }
        Ok(())
    }

    fn add(&mut self, region: &Region, key: &[u8], value: Option<&[u8]>, is_range: bool) {
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value.unwrap_or_default());
        self.changes.push(BatchChange {
            region: region.clone(),
            key_bytes: key.len(),
            value_bytes: value.map(<[u8]>::len),
            is_range,
            ends: None,
        });
    }

    /// Number of changes in the batch.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Whether the batch has no changes.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Removes all changes and keeps the allocated memory.
    pub fn clear(&mut self) {
        self.changes.clear();
        self.bytes.clear();
    }
}
