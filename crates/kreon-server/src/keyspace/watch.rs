//! Watched keys: which connections are told of a change.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use bytes::Bytes;
use parking_lot::Mutex;

/// A key of a database.
pub(crate) type DbKey = (usize, Bytes);

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
    keys: Vec<Watched>,
}

/// A watched key.
#[derive(Clone, Debug)]
pub(crate) struct Watched {
    pub key: DbKey,
    /// When it would end, if it existed when the watch began; in milliseconds since 1970.
    pub deadline_ms: Option<u64>,
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
}

impl Watching {
    /// Watches `key` from now on. A key that is watched already stays so.
    pub(crate) fn add(&mut self, table: &Arc<WatchTable>, key: DbKey) {
        if self.keys.iter().any(|watched| watched.key == key) {
            return;
        }
        table.add(key.clone(), &self.is_touched);
        self.table = Some(Arc::clone(table));
        self.keys.push(Watched {
            key,
            deadline_ms: None,
        });
    }

    /// Notes when a watched key ends.
    pub(crate) fn ends(&mut self, key: &DbKey, deadline_ms: Option<u64>) {
        if let Some(watched) = self.keys.iter_mut().find(|watched| watched.key == *key) {
            watched.deadline_ms = deadline_ms;
        }
    }

    pub(crate) fn keys(&self) -> &[Watched] {
        &self.keys
    }

    /// Whether no key is watched.
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether a watched key was changed, or has ended by `now_ms`. Certain only with the locks of the keys.
    pub(crate) fn is_broken(&self, now_ms: u64) -> bool {
        let has_ended = |watched: &Watched| watched.deadline_ms.is_some_and(|end| end <= now_ms);
        self.is_touched.load(SeqCst) || self.keys.iter().any(has_ended)
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        if let Some(table) = &self.table {
            for watched in &self.keys {
                table.remove(&watched.key, &self.is_touched);
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
        assert!(!other.is_broken(9) && other.is_broken(10));
        drop(one);
        assert_eq!(table.watched(), [key("b")]);
        drop(other);
        assert!(table.is_empty());
    }
}
