//! Batches: several changes that happen together.

use crate::Region;

/// Changes that are applied together by [`Store::write`](crate::Store::write): readers and crashes see
/// all of them or none. A later change of a key wins over an earlier one. The batch holds copies of
/// keys and values.
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
    pub(crate) changes: Vec<Change>,
    /// Keys and values, one behind the other.
    pub(crate) bytes: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Change {
    pub region: Region,
    pub key_bytes: usize,
    /// `None` for a deletion.
    pub value_bytes: Option<usize>,
}

impl WriteBatch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds: `key` of `region` gets `value`.
    pub fn put(&mut self, region: &Region, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.add(region, key.as_ref(), Some(value.as_ref()));
    }

    /// Adds: `key` of `region` is deleted.
    pub fn delete(&mut self, region: &Region, key: impl AsRef<[u8]>) {
        self.add(region, key.as_ref(), None);
    }

    fn add(&mut self, region: &Region, key: &[u8], value: Option<&[u8]>) {
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value.unwrap_or_default());
        self.changes.push(Change {
            region: region.clone(),
            key_bytes: key.len(),
            value_bytes: value.map(<[u8]>::len),
        });
    }

    /// How many changes it holds.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Forgets all changes, keeps the memory.
    pub fn clear(&mut self) {
        self.changes.clear();
        self.bytes.clear();
    }
}
