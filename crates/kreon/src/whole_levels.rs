//! Calls that write a whole level of a region: loads and compaction.

use kreon_engine::Pairs;

use crate::{Progress, Region, Result};

impl Region {
    /// Loads many pairs atomically, in strictly ascending key order, and returns their number. The pairs become a level
    /// of the region without passing through memory: values are written once, index nodes a second time if the region
    /// had a tree. The memory it takes does not depend on the number of pairs.
    ///
    /// Readers and crashes see all pairs or none. When this returns, the pairs and all earlier writes are durable.
    /// Existing keys get the new values, except keys that other threads write or delete during the load: those writes
    /// win. Other threads read and write meanwhile; open snapshots and scans do not see the load.
    ///
    /// A load starts with a [checkpoint](crate::Store::checkpoint), so it pays from a few thousand pairs on.
    ///
    /// # Errors
    /// `InvalidArgument` (keys that do not ascend, a key over 64 KiB, a value over 1 GiB), `Busy` (another load into
    /// this region is in progress), `OutOfSpace`, `Closed` (also if the region is dropped meanwhile), `Poisoned`:
    /// nothing was loaded, and the space is free again. `Io`: the store accepts no more writes, and only the next
    /// opening shows whether the pairs are there.
    ///
    /// ```
    /// # fn main() -> kreon::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let store = kreon::Store::open(folder.path().join("store"))?;
    /// let squares = store.region("squares")?;
    /// let pairs = (0..1000u32).map(|n| (n.to_be_bytes(), (n * n).to_string()));
    /// assert_eq!(squares.ingest(pairs)?, 1000);
    /// assert_eq!(squares.get(12u32.to_be_bytes())?.as_deref(), Some(b"144".as_slice()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn ingest<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64> {
        self.try_ingest(pairs.into_iter().map(Ok))
    }

    /// Like [`ingest`](Self::ingest), from a source that can fail.
    ///
    /// # Errors
    /// The first error of `pairs`, unchanged, or those of [`ingest`](Self::ingest). Nothing was loaded.
    pub fn try_ingest<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        pairs: impl IntoIterator<Item = Result<(K, V)>>,
    ) -> Result<u64> {
        let mut pairs = Pulled {
            pairs: pairs.into_iter(),
            pair: None,
        };
        self.engine.ingest(&self.state, &mut pairs)
    }

    /// Makes the region as small as possible. It spills the in-memory level, merges all levels of the region into one
    /// tree with full leaves and without tombstones, moves live records out of all log segments with dead bytes, and
    /// returns prepared segments to the file system. Durable when it returns. Other threads read and write meanwhile;
    /// their writes are not part of it. Versions that only open snapshots see stay; a later call frees them.
    ///
    /// The log is shared, so records of other regions are moved as well, but their trees stay as they are;
    /// [`Store::compact`](crate::Store::compact) rewrites those, too.
    ///
    /// Afterwards a store of 1 KiB pairs takes about 1.1 times their bytes, and up to 12 MB more. A pair with an inline
    /// value (up to [`inline_value_bytes_max`](crate::Options::inline_value_bytes_max)) takes 5 to 7 bytes more than
    /// key and value, where a key counts at least 8 bytes.
    ///
    /// It writes all live records of those segments and all nodes of the region once or twice, without regard to
    /// [`write_amplification_max`](crate::Options::write_amplification_max), and needs as much free space as the levels
    /// of the region take plus about 32 MB. A store never compacts by itself: call it before a long read-only phase, or
    /// to free space at once after many deletions.
    ///
    /// # Errors
    /// `Busy` (a load into this region is in progress), `OutOfSpace`, `Corruption`, `Closed` (also if the region is
    /// dropped meanwhile), `Poisoned`: the region is unchanged. `Io`.
    ///
    /// ```
    /// # fn main() -> kreon::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let store = kreon::Store::open(folder.path().join("store"))?;
    /// let region = store.region("r")?;
    /// region.put("a", "1")?;
    /// region.put("b", "2")?;
    /// region.delete("a")?;
    /// region.compact()?;
    /// let level = &store.stats().levels[0];
    /// assert_eq!((level.level, level.entries), (1, 1));
    /// # Ok(())
    /// # }
    /// ```
    pub fn compact(&self) -> Result<()> {
        self.compact_with(|_| ())
    }

    /// Like [`compact`](Self::compact), and calls `progress` from time to time from this thread; the last call has a
    /// share of 1.
    ///
    /// # Errors
    /// As [`compact`](Self::compact).
    pub fn compact_with(&self, mut progress: impl FnMut(Progress)) -> Result<()> {
        let regions = std::slice::from_ref(&self.state);
        self.engine.compact(regions, &mut progress)
    }
}

/// The pairs of an iterator, one at a time.
struct Pulled<I, K, V> {
    pairs: I,
    pair: Option<(K, V)>,
}

impl<I, K, V> Pairs for Pulled<I, K, V>
where
    I: Iterator<Item = Result<(K, V)>>,
    K: AsRef<[u8]>,
    V: AsRef<[u8]>,
{
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        self.pair = self.pairs.next().transpose()?;
        let pair = self.pair.as_ref();
        Ok(pair.map(|(key, value)| (key.as_ref(), value.as_ref())))
    }
}
