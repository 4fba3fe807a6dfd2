//! Regions: the handle for a set of keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use kreon_base::{Error, ErrorKind, KeyRange, Result, VALUE_BYTES_MAX, prefix_bounds};

use super::answer::Answer;
use super::handle::{Handle, REGION_BYTES};
use super::scan::{Bounds, Scan};
use crate::format::{ITEM_KEY_BYTES_MAX, key_hash};
use crate::partition::{Durability, Request, Task};

/// Requests and bytes of keys and values of one call that are under way together at most, about: enough for any depth.
const TOGETHER_MAX: usize = 1024;
const TOGETHER_BYTES_MAX: usize = 8 << 20;

/// A set of keys of its own in a store. A handle: clones are the same region.
///
/// Calls of a store that was closed fail with `Closed`, as they do in a process that was forked from the one that opened it.
/// After a write or flush of the volume has failed, changes fail with `Poisoned` and reads go on.
///
/// Calls that wait are refused with `InvalidArgument` on a worker of a store, which runs the wake-ups of futures. Each
/// request under way holds its key and value in memory beside `memory_bytes`: who makes futures bounds their number.
#[derive(Clone)]
pub struct Region {
    handle: Arc<Handle>,
    number: u32,
    /// Of all handles of the region.
    is_dropped: Arc<AtomicBool>,
}

impl Region {
    /// Not in a forked process.
    pub(super) fn new(handle: Arc<Handle>, number: u32) -> Self {
        Self {
            is_dropped: handle.dropped(number),
            handle,
            number,
        }
    }

    /// Whether all its handles refuse puts from now on.
    pub(super) fn set_dropped(&self, is_dropped: bool) {
        self.is_dropped.store(is_dropped, SeqCst);
    }

    /// The value of `key`; `None` if it has none. Costs one read of the device if the item is not cached, and nothing but
    /// a lock if it is, or if there is none. A large value, over about 255 KiB, costs one more read for each 255 KiB, up to
    /// 16 at a time; these are not cached. It is that of one moment, whatever changes the key meanwhile.
    ///
    /// # Errors
    /// `InvalidArgument`: the key is longer than 65,531 bytes. `Corruption`: the item does not verify. `Closed`, `Io`.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.handle
            .ask_and_wait(self.request(key.as_ref(), Task::Get)?)
    }

    /// Whether `key` has a value. Costs as much as [`get`](Self::get).
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// The values of `keys`, in their order, read at the depth of all workers.
    ///
    /// # Errors
    /// As [`get`](Self::get); the first failure in the order of the keys.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        let mut values = Vec::with_capacity(keys.len());
        for keys in keys.chunks(TOGETHER_MAX) {
            let requests = keys.iter().map(|key| self.request(key.as_ref(), Task::Get));
            for value in self.handle.ask_many(requests.collect::<Result<_>>()?)? {
                values.push(value?);
            }
        }
        Ok(values)
    }

    /// Gives `key` a value of up to 1 GiB. With [`Durability::Sync`] it is durable when this returns.
    ///
    /// If key and value together are longer than about 255 KiB, the value is *large*: it is written in parts of 255 KiB, up to
    /// 16 at a time, and then its places as an item, which readers see from then on. It takes the space of the old value
    /// besides until it is durable. Memory: a copy of the value until it is durable, about 8 MiB for parts under way, and
    /// 8 bytes for each part as long as the key has the value. Other requests of the key wait meanwhile, but for gets.
    ///
    /// # Errors
    /// `InvalidArgument`: the key is longer than 65,531 bytes, or the value than 1 GiB. `OutOfSpace`: the volume or the
    /// index is full; nothing was changed. `NotFound`: the region was dropped. `Closed`, `Poisoned`, `Io`.
    pub fn put(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        durability: Durability,
    ) -> Result<()> {
        let request = self.request(key.as_ref(), put(value.as_ref(), durability)?)?;
        self.handle.ask_and_wait(request).map(|_| ())
    }

    /// Deletes `key`, if it is there. Durable as [`put`](Self::put).
    ///
    /// # Errors
    /// As [`put`](Self::put); a full volume or index does not stop it.
    pub fn delete(&self, key: impl AsRef<[u8]>, durability: Durability) -> Result<()> {
        let request = self.request(key.as_ref(), Task::Delete { durability })?;
        self.handle.ask_and_wait(request).map(|_| ())
    }

    /// Puts (`Some`) and deletes (`None`) many keys at the depth of all workers. No atomic batch: each change stands for
    /// itself, in no order but among those of one key. Not more than 1024 changes or about 8 MiB are under way together.
    ///
    /// # Errors
    /// As [`put`](Self::put); the first failure in the order of the changes. All others were tried, but for those behind a
    /// key or value that is too long.
    pub fn write_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        changes: &[(K, Option<V>)],
        durability: Durability,
    ) -> Result<()> {
        let (mut first, mut refused) = (Ok(()), Ok(()));
        let mut requests = Vec::new();
        let mut len_bytes = 0;
        let mut changes = changes.iter().peekable();
        while let Some((key, value)) = changes.next() {
            let (key, value) = (key.as_ref(), value.as_ref().map(AsRef::as_ref));
            let task = match value {
                Some(value) => put(value, durability),
                None => Ok(Task::Delete { durability }),
            };
            len_bytes += key.len() + value.map_or(0, <[u8]>::len);
            match task.and_then(|task| self.request(key, task)) {
                Ok(request) => requests.push(request),
                Err(error) => refused = Err(error),
            }
            let is_enough = requests.len() >= TOGETHER_MAX || len_bytes >= TOGETHER_BYTES_MAX;
            if is_enough || changes.peek().is_none() || refused.is_err() {
                len_bytes = 0;
                for outcome in self.handle.ask_many(std::mem::take(&mut requests))? {
                    first = first.and(outcome.map(|_| ()));
                }
            }
            if refused.is_err() {
                break;
            }
        }
        first.and(refused)
    }

    /// As [`get`](Self::get), without waiting: the read begins now, whether the future is polled or not.
    ///
    /// # Errors
    /// As [`get`](Self::get), by the future.
    pub fn get_async(&self, key: impl AsRef<[u8]>) -> Answer<Option<Vec<u8>>> {
        self.begin(key.as_ref(), Ok(Task::Get), |value| value)
    }

    /// As [`put`](Self::put), without waiting: the change begins now, whether the future is polled or not.
    ///
    /// # Errors
    /// As [`put`](Self::put), by the future.
    pub fn put_async(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        durability: Durability,
    ) -> Answer<()> {
        let task = put(value.as_ref(), durability);
        self.begin(key.as_ref(), task, |_| ())
    }

    /// As [`delete`](Self::delete), without waiting: the change begins now, whether the future is polled or not.
    ///
    /// # Errors
    /// As [`delete`](Self::delete), by the future.
    pub fn delete_async(&self, key: impl AsRef<[u8]>, durability: Durability) -> Answer<()> {
        self.begin(key.as_ref(), Ok(Task::Delete { durability }), |_| ())
    }

    /// The pairs of a range of keys, in ascending order; `rev()` for descending order. No snapshot: see [`Scan`], also for
    /// what it costs.
    pub fn range(&self, range: impl KeyRange) -> Scan {
        let region = self.number.to_be_bytes();
        Scan::new(&self.handle, Bounds::of_region(region, range.into_bounds()))
    }

    /// The pairs whose keys start with `prefix`, like [`range`](Self::range).
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Scan {
        self.range(prefix_bounds(prefix.as_ref()))
    }

    /// All pairs of the region, like [`range`](Self::range).
    pub fn iter(&self) -> Scan {
        self.range(..)
    }

    /// The pair with the smallest key; `None` if the region is empty.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn first(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.iter().limit(1).next().transpose()
    }

    /// The pair with the largest key, like [`first`](Self::first).
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn last(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.iter().limit(1).next_back().transpose()
    }

    /// Deletes the keys of a range, those that a scan of it finds, 1024 at a time. **Not atomic**: a failure or a power cut
    /// leaves a part of them, and a key that is put meanwhile may stay. Costs a scan of the keys and a deletion for each.
    ///
    /// # Errors
    /// As [`delete`](Self::delete).
    pub fn delete_range(&self, range: impl KeyRange, durability: Durability) -> Result<()> {
        let mut keys = self.range(range).keys();
        loop {
            let some = keys.by_ref().take(TOGETHER_MAX);
            let deletions = some.map(|key| key.map(|key| (key, None::<&[u8]>)));
            let deletions = deletions.collect::<Result<Vec<_>>>()?;
            if deletions.is_empty() {
                return Ok(());
            }
            self.write_many(&deletions, durability)?;
        }
    }

    fn begin<T>(
        &self,
        key: &[u8],
        task: Result<Task>,
        convert: fn(Option<Vec<u8>>) -> T,
    ) -> Answer<T> {
        let request = task.and_then(|task| self.request(key, task));
        let asked = request.and_then(|request| self.handle.ask(request));
        Answer::new(asked.into(), convert, self.handle.home())
    }

    fn request(&self, key: &[u8], task: Task) -> Result<Request> {
        if matches!(task, Task::Put { .. }) && self.is_dropped.load(SeqCst) {
            return Err(Error::new(ErrorKind::NotFound, "the region was dropped"));
        }
        let longest = ITEM_KEY_BYTES_MAX - REGION_BYTES;
        if key.len() > longest {
            let bytes = key.len();
            return Err(Error::invalid(format!(
                "a key of {bytes} bytes: {longest} is the longest"
            )));
        }
        let key = [&self.number.to_be_bytes(), key].concat();
        Ok(Request {
            ticket: None,
            key_hash: key_hash(self.handle.shared()?.seal, &key),
            key,
            task,
        })
    }
}

fn put(value: &[u8], durability: Durability) -> Result<Task> {
    if value.len() > VALUE_BYTES_MAX {
        let bytes = value.len();
        return Err(Error::invalid(format!(
            "a value of {bytes} bytes: {VALUE_BYTES_MAX} is the longest"
        )));
    }
    let value = value.to_vec();
    Ok(Task::Put { value, durability })
}
