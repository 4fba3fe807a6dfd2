//! Snapshots.

use std::fmt;
use std::sync::Arc;

use kreon_engine::{Engine, KeyBounds, OpenSnapshot, Own, prefix_bounds};

use crate::{Error, GetAsync, KeyRange, Region, Result, Scan, Value, ValueReader};

/// An immutable view of a whole store, over all its regions, at one moment. Cheap to clone; it is open until its last
/// clone and its last scan are dropped. Made by [`Store::snapshot`](crate::Store::snapshot).
///
/// ```
/// # fn main() -> kreon::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let store = kreon::Store::open(folder.path().join("store"))?;
/// let region = store.region("r")?;
/// region.put("k", "old")?;
/// let snapshot = store.snapshot();
/// region.put("k", "new")?;
/// assert_eq!(snapshot.get(&region, "k")?.as_deref(), Some(b"old".as_slice()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Snapshot {
    pub(crate) engine: Arc<Engine>,
    pub(crate) open: Arc<OpenSnapshot>,
}

impl Snapshot {
    /// The value of `key` of `region` at the snapshot.
    ///
    /// # Errors
    /// As [`Region::get`]; `InvalidArgument` for a region of another store.
    pub fn get(&self, region: &Region, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.check(region)?;
        let open = Some(&*self.open);
        let found = self
            .engine
            .get_value(&region.state, key.as_ref(), open, Own)?;
        Ok(found.map(Value::from))
    }

    /// A reader for the value of `key` of `region` at the snapshot. See [`Region::get_reader`].
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_reader(
        &self,
        region: &Region,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<ValueReader>> {
        self.check(region)?;
        let open = Arc::clone(&self.open);
        ValueReader::open(&self.engine, &region.state, key.as_ref(), open)
    }

    /// Calls `show` with the value of `key` of `region` at the snapshot. See [`Region::get_with`].
    ///
    /// # Errors
    /// As [`Region::get`].
    pub fn get_with<R>(
        &self,
        region: &Region,
        key: impl AsRef<[u8]>,
        show: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        self.check(region)?;
        self.engine
            .get(&region.state, key.as_ref(), Some(&self.open), show)
    }

    /// The value of `key` of `region` at the snapshot, as a future. See [`Region::get_async`].
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_async<K: AsRef<[u8]> + Unpin>(&self, region: &Region, key: K) -> GetAsync<K> {
        let task = self
            .check(region)
            .map(|()| self.engine.get_task(&region.state, Some(&self.open)));
        GetAsync::new(&self.engine, task, key)
    }

    /// Whether `key` of `region` had a value at the snapshot.
    ///
    /// # Errors
    /// As [`Region::get`].
    pub fn contains(&self, region: &Region, key: impl AsRef<[u8]>) -> Result<bool> {
        self.check(region)?;
        self.engine
            .contains(&region.state, key.as_ref(), Some(&self.open))
    }

    /// The pairs of a range of `region` at the snapshot. See [`Region::range`].
    pub fn range(&self, region: &Region, range: impl KeyRange) -> Scan {
        self.scan(region, range.into_bounds())
    }

    /// The pairs of `region` whose keys start with `prefix`, at the snapshot.
    pub fn prefix(&self, region: &Region, prefix: impl AsRef<[u8]>) -> Scan {
        self.scan(region, prefix_bounds(prefix.as_ref()))
    }

    /// All pairs of `region` at the snapshot.
    pub fn iter(&self, region: &Region) -> Scan {
        self.range(region, ..)
    }

    fn scan(&self, region: &Region, bounds: KeyBounds) -> Scan {
        match self.check(region) {
            Ok(()) => {
                let open = Arc::clone(&self.open);
                Scan::new(&self.engine, self.engine.scan(&region.state, open, bounds))
            }
            Err(error) => Scan::failing(&self.engine, error),
        }
    }

    pub(crate) fn check(&self, region: &Region) -> Result<()> {
        match Arc::ptr_eq(&self.engine, &region.engine) {
            true => Ok(()),
            false => Err(Error::invalid(
                "the region is of another store than the snapshot",
            )),
        }
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("position", &self.open.lsn().0)
            .finish_non_exhaustive()
    }
}
