//! Watched keys: which connections are told of a change.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use bytes::Bytes;
use parking_lot::Mutex;

/// A key of a database.
pub(crate) type DbKey = (usize, Bytes);

/// A range of keys that a command deletes.
#[derive(Clone, Debug)]
pub(crate) struct Emptied {
    pub db: usize,
    pub start: Bytes,
    /// Not part of it; `None`: it has no end.
    pub end: Option<Bytes>,
    /// Watched keys of the range that were not there before: nothing changes for them.
    pub absent: HashSet<Bytes>,
}

impl Emptied {
    /// Whether `key` is in the range.
    pub(crate) fn has(&self, key: &DbKey) -> bool {
        let is_before_end = self.end.as_ref().is_none_or(|end| key.1 < *end);
        key.0 == self.db && key.1 >= self.start && is_before_end
    }
}

/// Who watches which keys.
#[derive(Debug, Default)]
pub(crate) struct WatchTable {
    /// Number of entries of `keys`: a write that finds none takes no lock.
    count: AtomicUsize,
    keys: Mutex<HashMap<DbKey, Vec<Arc<AtomicBool>>>>,
}

/// The keys that a connection watches, until it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Watching {
    table: Option<Arc<WatchTable>>,
    is_touched: Arc<AtomicBool>,
    /// When each would end, if it existed when the watch began; in milliseconds since 1970.
    keys: HashMap<DbKey, Option<u64>>,
    /// What the keys take in memory, about.
    bytes: usize,
}

impl WatchTable {
    fn add(&self, key: DbKey, flag: &Arc<AtomicBool>) {
        let mut keys = self.keys.lock();
        keys.entry(key).or_default().push(Arc::clone(flag));
        self.count.store(keys.len(), SeqCst);
    }

    fn remove(&self, key: &DbKey, flag: &Arc<AtomicBool>) {
        let mut keys = self.keys.lock();
        if let Some(flags) = keys.get_mut(key) {
            flags.retain(|other| !Arc::ptr_eq(other, flag));
            if flags.is_empty() {
                keys.remove(key);
            }
        }
        self.count.store(keys.len(), SeqCst);
    }

    /// Whether nobody watches anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(SeqCst) == 0
    }

    /// Tells those who watch `key` that it was changed; called after the change, with the lock of the key.
    pub(crate) fn touch(&self, key: &DbKey) {
        if self.is_empty() {
            return;
        }
        for flag in self.keys.lock().get(key).into_iter().flatten() {
            flag.store(true, SeqCst);
        }
    }

    /// All watched keys.
    pub(crate) fn watched(&self) -> Vec<DbKey> {
        match self.is_empty() {
            true => Vec::new(),
            false => self.keys.lock().keys().cloned().collect(),
        }
    }

    /// Tells those who watch keys of `emptied` that these are gone; called after the change, with all locks.
    pub(crate) fn touch_emptied(&self, emptied: &Emptied) {
        if self.is_empty() {
            return;
        }
        for (key, flags) in &*self.keys.lock() {
            if emptied.has(key) && !emptied.absent.contains(&key.1) {
                flags.iter().for_each(|flag| flag.store(true, SeqCst));
            }
        }
    }
}

impl Watching {
    /// Watches `key` from now on. A key that is watched already stays so.
    pub(crate) fn add(&mut self, table: &Arc<WatchTable>, key: DbKey) {
        if self.keys.contains_key(&key) {
            return;
        }
        table.add(key.clone(), &self.is_touched);
        self.table = Some(Arc::clone(table));
        self.bytes += Self::bytes_of(&key.1);
        self.keys.insert(key, None);
    }

    /// What a watched key takes in memory, about: entries of the connection and of the table.
    pub(crate) fn bytes_of(key: &Bytes) -> usize {
        const ENTRIES_BYTES: usize = 192;
        key.len() + ENTRIES_BYTES
    }

    /// What all of them take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Notes when a watched key ends. What an earlier `WATCH` of it has found stays: the key may have ended since.
    pub(crate) fn ends(&mut self, key: &DbKey, deadline_ms: Option<u64>) {
        if let Some(watched_ms) = self.keys.get_mut(key) {
            *watched_ms = watched_ms.or(deadline_ms);
        }
    }

    /// When the first of the watched keys ends.
    pub(crate) fn first_end_ms(&self) -> Option<u64> {
        self.keys.values().flatten().min().copied()
    }

    pub(crate) fn keys(&self) -> impl ExactSizeIterator<Item = &DbKey> {
        self.keys.keys()
    }

    /// Whether no key is watched.
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether a watched key was changed, or has ended by `now_ms`. Certain only with the locks of the keys.
    pub(crate) fn is_broken(&self, now_ms: u64) -> bool {
        let has_ended = |deadline_ms: &Option<u64>| deadline_ms.is_some_and(|end| end <= now_ms);
        self.is_touched.load(SeqCst) || self.keys.values().any(has_ended)
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        if let Some(table) = &self.table {
            for key in self.keys.keys() {
                table.remove(key, &self.is_touched);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_breaks_the_watching_of_its_key_alone() {
        let table = Arc::new(WatchTable::default());
        let key = |name: &'static str| (0, Bytes::from_static(name.as_bytes()));
        let [mut one, mut other] = [Watching::default(), Watching::default()];
        one.add(&table, key("a"));
        one.add(&table, key("a"));
        other.add(&table, key("b"));
        table.touch(&(1, Bytes::from_static(b"b")));
        table.touch(&key("a"));
        assert!(one.is_broken(0) && !other.is_broken(0));
        other.ends(&key("b"), Some(10));
        // Watched once more when it had ended.
        other.ends(&key("b"), None);
        assert!(!other.is_broken(9) && other.is_broken(10));
        drop(one);
        assert_eq!(table.watched(), [key("b")]);
        drop(other);
        assert!(table.is_empty());
    }
}
