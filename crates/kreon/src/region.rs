//! Regions.

use std::fmt;
use std::sync::Arc;

use kreon_engine::{
    DeletedRange, Engine, Fill, KeyBounds, Operation, Own, RegionState, Terms, prefix_bounds,
};

use crate::{Durability, Durable, GetAsync, KeyRange, Result, Scan, Value, ValueReader};

/// A named, ordered key space of a store, like a table. Made by [`Store::region`](crate::Store::region). Cheap to
/// clone.
///
/// ```
/// # fn main() -> kreon::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let store = kreon::Store::open(folder.path().join("store"))?;
/// let cities = store.region("cities")?;
/// cities.put("b", "2")?;
/// cities.put("a", "1")?;
/// let keys: Result<Vec<_>, _> = cities.range("a"..).keys().collect();
/// assert_eq!(keys?, [b"a", b"b"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Region {
    pub(crate) engine: Arc<Engine>,
    pub(crate) state: Arc<RegionState>,
    pub(crate) durability: Durability,
}

impl Region {
    /// The name of the region.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// Sets the value of `key`, with the durability that the store was opened with. It stays until the next write of the
    /// key, or for the [TTL](crate::RegionOptions::ttl) of the region; for another one see
    /// [`put_with_ttl`](Self::put_with_ttl).
    ///
    /// The value is copied into the log buffers piece by piece, so a long value takes no memory beyond the store's
    /// budget, unless the region [packs](crate::RegionOptions::compression) its values; other writers wait while a long value is copied.
    ///
    /// # Errors
    /// `InvalidArgument` (key over 64 KiB, value over 1 GiB), `OutOfSpace`, `Closed`, `Poisoned`: nothing was changed.
    /// With [`Durability::Sync`], `Poisoned` also if the flush failed: then readers see the write, and it is unknown
    /// whether it is durable.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_with(key, value, self.durability)
    }

    /// Sets the value of `key`, with the given durability.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn put_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        durability: Durability,
    ) -> Result<()> {
        self.change(key.as_ref(), Some(value.as_ref()), durability)
    }

    /// Deletes `key`. It is no error if the key does not exist.
    ///
    /// # Errors
    /// As [`put`](Self::put). A full volume still accepts deletions.
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_with(key, self.durability)
    }

    /// Deletes `key`, with the given durability.
    ///
    /// # Errors
    /// As [`delete`](Self::delete).
    pub fn delete_with(&self, key: impl AsRef<[u8]>, durability: Durability) -> Result<()> {
        self.change(key.as_ref(), None, durability)
    }

    /// Sets the value of `key` without waiting for the device. Readers see it when the call returns; the future
    /// completes when the write survives any crash. All waiting writes share a flush, so one thread with many futures
    /// in flight writes as fast as many threads with [`Durability::Sync`]. Like a buffered put, the call itself waits
    /// if the device falls behind.
    ///
    /// # Errors
    /// From the future: `InvalidArgument`, `OutOfSpace`, `Closed`, `Poisoned` if nothing was applied, as in
    /// [`put`](Self::put); `Poisoned`, `Closed` if it is unknown whether the write is durable.
    ///
    /// ```
    /// # use std::{future::Future, pin::pin, task::{Context, Poll, Waker}, thread};
    /// # fn block_on<F: Future>(future: F) -> F::Output {
    /// #     let mut future = pin!(future);
    /// #     loop {
    /// #         match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
    /// #             Poll::Ready(output) => return output,
    /// #             Poll::Pending => thread::yield_now(),
    /// #         }
    /// #     }
    /// # }
    /// # fn main() -> kreon::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let store = kreon::Store::open(folder.path().join("store"))?;
    /// # let cities = store.region("cities")?;
    /// # block_on(async {
    /// let chania = cities.put_async("gr/chania", "53910");
    /// let rethymno = cities.put_async("gr/rethymno", "32468");
    /// assert!(cities.contains("gr/chania")?);
    /// chania.await?;
    /// rethymno.await?; // by the same flush
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    pub fn put_async(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Durable {
        let operation = self.operation(key.as_ref(), Some(value.as_ref()));
        self.engine.write_async(&[operation])
    }

    /// Deletes `key` without waiting for the device, like [`put_async`](Self::put_async).
    ///
    /// # Errors
    /// As [`put_async`](Self::put_async). A full volume still accepts deletions.
    pub fn delete_async(&self, key: impl AsRef<[u8]>) -> Durable {
        self.engine
            .write_async(&[self.operation(key.as_ref(), None)])
    }

    /// Deletes all keys of a range by one write, which costs as much as the deletion of one key. Later puts into the
    /// range are visible; open snapshots and scans still see the old values. A load in progress loses its keys in the
    /// range, too.
    ///
    /// Reads skip a deleted range without visiting its entries, and a spill removes it from the levels. After an
    /// opening the first scan over the range visits those entries that are still in memory one by one.
    ///
    /// ```
    /// # fn main() -> kreon::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let region = kreon::Store::open(folder.path().join("store"))?.region("r")?;
    /// for day in 1..=9 {
    ///     region.put(format!("log/{day}"), "entry")?;
    /// }
    /// region.delete_range("log/3".."log/8")?;
    /// assert_eq!(region.prefix("log/").count(), 4);
    /// region.delete_prefix("log/")?;
    /// assert_eq!(region.iter().count(), 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`delete`](Self::delete); also `InvalidArgument` for a bound over 64 KiB.
    pub fn delete_range(&self, range: impl KeyRange) -> Result<()> {
        self.delete_range_with(range, self.durability)
    }

    /// Deletes all keys of a range, with the given durability.
    ///
    /// # Errors
    /// As [`delete_range`](Self::delete_range).
    pub fn delete_range_with(&self, range: impl KeyRange, durability: Durability) -> Result<()> {
        let range = DeletedRange::of(range.into_bounds())?;
        self.engine
            .write(self.deletion(range.as_ref()).as_slice(), durability)
    }

    /// Deletes all keys of a range without waiting for the device, like [`put_async`](Self::put_async).
    ///
    /// # Errors
    /// As [`delete_async`](Self::delete_async); also `InvalidArgument` for a bound over 64 KiB.
    pub fn delete_range_async(&self, range: impl KeyRange) -> Durable {
        match DeletedRange::of(range.into_bounds()) {
            Ok(range) => self
                .engine
                .write_async(self.deletion(range.as_ref()).as_slice()),
            Err(error) => Durable::refused(error),
        }
    }

    /// Deletes all keys that start with `prefix`, like [`delete_range`](Self::delete_range).
    ///
    /// # Errors
    /// As [`delete_range`](Self::delete_range).
    pub fn delete_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<()> {
        self.delete_range(prefix_bounds(prefix.as_ref()))
    }

    /// The deletion of a range; `None` if the range is empty.
    fn deletion<'a>(&'a self, range: Option<&'a DeletedRange>) -> Option<Operation<'a>> {
        range.map(|range| range.operation(&self.state))
    }

    fn change(&self, key: &[u8], value: Option<&[u8]>, durability: Durability) -> Result<()> {
        self.engine.write(&[self.operation(key, value)], durability)
    }

    pub(crate) fn operation<'a>(&'a self, key: &'a [u8], value: Option<&'a [u8]>) -> Operation<'a> {
        Operation {
            region: &self.state,
            key,
            value,
            is_range: false,
            terms: Terms::default(),
        }
    }

    /// A copy of the value of `key`, in one allocation of its length. Reading a long value takes a few MiB more; for a
    /// value that does not fit in memory use [`get_reader`](Self::get_reader).
    ///
    /// # Errors
    /// `Corruption` names the page or record that does not verify; `Closed`, `Io`.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        let found = self.engine.get_value(&self.state, key.as_ref(), None, Own);
        Ok(found?.map(Value::from))
    }

    /// Replaces the content of `buffer` by the value of `key`. Returns `false`, with an empty buffer, if the key does
    /// not exist. The memory of the buffer is reused; it grows to the length of key and value at most.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    ///
    /// ```
    /// # fn main() -> kreon::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let region = kreon::Store::open(folder.path().join("store"))?.region("r")?;
    /// region.put("k", "value")?;
    /// let mut buffer = Vec::new();
    /// assert!(region.get_into("k", &mut buffer)?);
    /// assert_eq!(buffer, b"value");
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_into(&self, key: impl AsRef<[u8]>, buffer: &mut Vec<u8>) -> Result<bool> {
        buffer.clear();
        let take = Fill(buffer);
        let found = self
            .engine
            .get_value(&self.state, key.as_ref(), None, take)?;
        Ok(found.is_some())
    }

    /// A reader for the value of `key`; `None` if the key does not exist. It takes about 4 MiB, however long the value
    /// is. See [`ValueReader`].
    ///
    /// # Errors
    /// As [`get`](Self::get).
    ///
    /// ```
    /// # use std::io::{Read, Seek, SeekFrom};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let region = kreon::Store::open(folder.path().join("store"))?.region("r")?;
    /// region.put("film", vec![7; 10 << 20])?;
    /// let mut film = region.get_reader("film")?.unwrap();
    /// film.seek(SeekFrom::End(-1000))?;
    /// assert_eq!(std::io::copy(&mut film, &mut std::io::sink())?, 1000);
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_reader(&self, key: impl AsRef<[u8]>) -> Result<Option<ValueReader>> {
        let snapshot = self.engine.snapshot();
        ValueReader::open(&self.engine, &self.state, key.as_ref(), snapshot)
    }

    /// Calls `show` with the value of `key`, without a copy if the value lies in one page; otherwise with a copy that
    /// is freed when `show` returns. `show` should be short: it may pin a page in memory.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    ///
    /// ```
    /// # fn main() -> kreon::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let region = kreon::Store::open(folder.path().join("store"))?.region("r")?;
    /// region.put("k", "value")?;
    /// assert_eq!(region.get_with("k", |value| value.len())?, Some(5));
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_with<R>(
        &self,
        key: impl AsRef<[u8]>,
        show: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        self.engine.get(&self.state, key.as_ref(), None, show)
    }

    /// The value of `key` as a future, so that one thread can keep hundreds of gets in flight. It works with any
    /// executor; [`Store::drive`](crate::Store::drive) needs the fewest thread switches.
    ///
    /// A value in memory is ready at the first poll; otherwise the poll submits the reads and returns. A poll reads
    /// like [`get`](Self::get), waiting for the device, in these cases: a key over 1 KiB, a value over 64 KiB, a dirty
    /// page that must be written to free a frame, no `io_uring`, or no free memory. A drop never waits for the device.
    /// The result is the value at some moment between the first and the last poll. The future may be dropped at any
    /// time, leaked, or moved between threads. A waker must not call into the store.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    ///
    /// ```
    /// # fn main() -> kreon::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let store = kreon::Store::open(folder.path().join("store"))?;
    /// # let region = store.region("r")?;
    /// region.put("k", "value")?;
    /// let value = store.drive(async { region.get_async("k").await })?;
    /// assert_eq!(value.as_deref(), Some(b"value".as_slice()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_async<K: AsRef<[u8]> + Unpin>(&self, key: K) -> GetAsync<K> {
        GetAsync::new(
            &self.engine,
            Ok(self.engine.get_task(&self.state, None)),
            key,
        )
    }

    /// Whether `key` has a value. Reads only the index.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.engine.contains(&self.state, key.as_ref(), None)
    }

    /// The values of many keys, in the order of `keys`. All reads that miss memory are in flight together, so on flash
    /// this is many times faster than single gets. All values are in memory at once when it returns.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    ///
    /// ```
    /// # fn main() -> kreon::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let region = kreon::Store::open(folder.path().join("store"))?.region("r")?;
    /// region.put("a", "1")?;
    /// let values = region.multi_get(&["a", "b"])?;
    /// assert_eq!(values[0].as_deref(), Some(b"1".as_slice()));
    /// assert!(values[1].is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        let mut values = vec![None; keys.len()];
        self.engine.multi_get(&self.state, &keys, |index, value| {
            if let Some(place) = values.get_mut(index) {
                *place = Some(Value::from(value));
            }
        })?;
        Ok(values)
    }

    /// The pairs of a range of keys, in ascending order; `rev()` for descending order. The scan sees the store as it is
    /// at this call.
    ///
    /// ```
    /// # fn main() -> kreon::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let region = kreon::Store::open(folder.path().join("store"))?.region("r")?;
    /// for key in ["a", "b", "c"] {
    ///     region.put(key, "")?;
    /// }
    /// let last = region.range("a".."c").next_back().unwrap()?;
    /// assert_eq!(last.0, b"b".as_slice());
    /// # Ok(())
    /// # }
    /// ```
    pub fn range(&self, range: impl KeyRange) -> Scan {
        self.scan(range.into_bounds())
    }

    /// The pairs whose keys start with `prefix`, like [`range`](Self::range).
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Scan {
        self.scan(prefix_bounds(prefix.as_ref()))
    }

    fn scan(&self, bounds: KeyBounds) -> Scan {
        let snapshot = self.engine.snapshot();
        Scan::new(
            &self.engine,
            self.engine.scan(&self.state, snapshot, bounds),
        )
    }

    /// All pairs of the region, like [`range`](Self::range).
    pub fn iter(&self) -> Scan {
        self.range(..)
    }

    /// The pair with the smallest key; `None` if the region is empty. A region can serve as a queue: deleted keys in
    /// front cost next to nothing if they were deleted in key order, or if an earlier scan passed them.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    ///
    /// ```
    /// # fn main() -> kreon::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let queue = kreon::Store::open(folder.path().join("store"))?.region("r")?;
    /// for number in 1_u64..=3 {
    ///     queue.put(number.to_be_bytes(), format!("job {number}"))?;
    /// }
    /// while let Some((number, _job)) = queue.first()? {
    ///     queue.delete(number)?;
    /// }
    /// assert!(queue.last()?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn first(&self) -> Result<Option<(Value, Value)>> {
        self.iter().limit(1).next().transpose()
    }

    /// The pair with the largest key, like [`first`](Self::first).
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn last(&self) -> Result<Option<(Value, Value)>> {
        self.iter().limit(1).next_back().transpose()
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Region")
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}
