//! What makes whole levels of a region at once: loads and compaction.

use kreon_engine::Pairs;

use crate::{Progress, Region, Result};

impl Region {
    /// Loads many pairs at once, in strictly ascending order of their keys; returns how many. They become a
    /// level of the region without going through memory first: values are written once, index nodes once
    /// more if the region had a tree before. The memory it takes does not depend on how many there are.
    ///
    /// All or nothing: no reader sees a part of them, and no crash leaves one. They are durable when this
    /// returns, and so is everything written before. Existing keys get the new values, but for keys that
    /// somebody else writes or deletes while the load runs: the load leaves those as they are. Other
    /// threads read and write meanwhile; snapshots and scans that are open keep what they see.
    ///
    /// It begins with a [checkpoint](crate::Store::checkpoint), so it pays from a few thousand pairs on.
    ///
    /// # Errors
    /// `InvalidArgument` (keys that do not ascend, a key over 64 KiB, a value over 1 GiB), `Busy` (another
    /// load into this region is under way), `OutOfSpace`, `Closed` (also if the region is dropped
    /// meanwhile), `Poisoned`: nothing of the load is in the store, and its space is given back. `Io`: the
    /// store takes no more writes, and whether the pairs are there shows when it is opened again.
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

    /// As [`ingest`](Self::ingest), from a source that can fail.
    ///
    /// # Errors
    /// The first of `pairs`, as it is, or those of [`ingest`](Self::ingest): nothing of the load is there.
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

    /// Gives back as much space as can be had: spills what the in-memory level has, makes one tree of all levels of this
    /// region, of which every leaf is new and full and in which no deletion stays, moves live records out of all segments
    /// of the log that have dead ones, and gives what was kept ready back to the file system. The log is shared, so records
    /// of other regions are moved, too; their trees stay as they are: [`Store::compact`](crate::Store::compact) makes all
    /// of them anew. Durable when it returns. Others read and write meanwhile; what they write is not part of it.
    ///
    /// What only an open snapshot sees stays; a later call gives that back.
    ///
    /// Afterwards the store takes about 1.1 times the bytes of its pairs of 1 KiB, and up to 12 MB. Pairs with values in
    /// the leaves (up to [`inline_value_bytes_max`](crate::Options::inline_value_bytes_max)) take 5 to 7 bytes more than key and
    /// value, of a key at least 8.
    ///
    /// It writes all live records of sparse segments and all nodes of the region once or twice, whatever
    /// [`write_amplification_max`](crate::Options::write_amplification_max) says, and needs as much free space as the
    /// region's levels take and some 32 MB for copies. No store asks for it: it is for reading much after the last write,
    /// and for giving space back at once after many deletions.
    ///
    /// # Errors
    /// `Busy` (a load into this region is under way), `OutOfSpace`, `Corruption`, `Closed` (also if the region is
    /// dropped meanwhile), `Poisoned`: the region is as it was. `Io`.
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

    /// As [`compact`](Self::compact), and calls `progress` now and then, from this thread: with a share of 1 when all
    /// is done.
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
