//! Keys that expire.

use std::time::{Duration, SystemTime};

use kreon_base::{Attributes, Timestamp};
use kreon_engine::{Terms, Update};

use crate::batch::Ends;
use crate::expiry::timestamp;
use crate::{Durable, Region, Result, Snapshot, Transaction, WriteBatch};

/// How long the value of a key lives: see [`Region::ttl`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ttl {
    /// Until the next write of the key.
    Unlimited,
    /// For so long, unless the key is written before. Never zero.
    Left(Duration),
}

impl Ttl {
    /// What is left at `now`.
    pub(crate) fn of((attributes, now): (Attributes, Timestamp)) -> Self {
        match attributes.expires() {
            None => Self::Unlimited,
            Some(expires) => {
                let ms = expires.ms().saturating_sub(now.ms());
                Self::Left(Duration::from_millis(ms))
            }
        }
    }
}

/// Keys that expire. An expired key is gone at once for gets, scans, transactions and whatever else reads; its space comes
/// back with later spills, merges and garbage collection, or by [`Store::compact`](crate::Store::compact). A snapshot, a
/// scan and a transaction see what was alive when they were made, however long they are open.
///
/// Expiries are moments of the wall clock, to the millisecond, and hold across reopenings. Within one opening the clock never
/// goes back: while the system's is behind what was told before, it stands still. Set back between two openings it lets keys
/// that had expired come back, if their space was not taken back by then.
impl Region {
    /// Sets the value of `key` for `ttl` from this call on, with the durability that the store was opened with ([`WriteBatch`] for
    /// another one). A later [`put`](Self::put) of the key removes the expiry.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # fn main() -> kreon::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let region = kreon::Store::open(folder.path().join("store"))?.region("r")?;
    /// region.put_with_ttl("session", "anna", Duration::from_secs(3600))?;
    /// assert!(matches!(region.ttl("session")?, Some(kreon::Ttl::Left(left)) if left.as_secs() > 3000));
    /// region.put("session", "bert")?;
    /// assert_eq!(region.ttl("session")?, Some(kreon::Ttl::Unlimited));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`put`](Self::put); `InvalidArgument` for a `ttl` of zero. A fraction of a millisecond counts as a whole one, and
    /// what would expire after the year 10889 expires then.
    pub fn put_with_ttl(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<()> {
        let mut operation = self.operation(key.as_ref(), Some(value.as_ref()));
        operation.terms = Terms::until(Some(self.engine.expiry_after(ttl)?));
        self.engine.write(&[operation], self.durability)
    }

    /// Sets the value of `key` until `moment` of the wall clock, with the durability that the store was opened with: what
    /// [`Expiry::At`](crate::Expiry::At) tells of another store, for one. A moment that has passed leaves the key without a
    /// value, from the next tick of the clock on. A fraction of a millisecond counts as a whole one; the last moment is in the
    /// year 10889.
    ///
    /// ```
    /// # use std::time::{Duration, SystemTime};
    /// # fn main() -> kreon::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let store = kreon::Store::open(folder.path().join("store"))?;
    /// # let (region, copy) = (store.region("r")?, store.region("copy")?);
    /// region.put_until("session", "anna", SystemTime::now() + Duration::from_secs(3600))?;
    /// let mut scan = region.iter();
    /// while let Some(expiry) = scan.peek_expiry()? {
    ///     let Some((key, value)) = scan.next().transpose()? else { break };
    ///     match expiry {
    ///         kreon::Expiry::At(moment) => copy.put_until(key, value, moment)?,
    ///         kreon::Expiry::Never => copy.put(key, value)?, // `copy` has no TTL
    ///     }
    /// }
    /// assert!(matches!(copy.ttl("session")?, Some(kreon::Ttl::Left(_))));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn put_until(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        moment: SystemTime,
    ) -> Result<()> {
        let mut operation = self.operation(key.as_ref(), Some(value.as_ref()));
        operation.terms = Terms::until(Some(timestamp(moment)));
        self.engine.write(&[operation], self.durability)
    }

    /// As [`put_with_ttl`](Self::put_with_ttl), without waiting for the device: see [`put_async`](Self::put_async).
    ///
    /// # Errors
    /// From the future: those of [`put_async`](Self::put_async) and of [`put_with_ttl`](Self::put_with_ttl).
    pub fn put_with_ttl_async(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Durable {
        let mut operation = self.operation(key.as_ref(), Some(value.as_ref()));
        match self.engine.expiry_after(ttl) {
            Ok(expires) => operation.terms = Terms::until(Some(expires)),
            Err(error) => return Durable::refused(error),
        }
        self.engine.write_async(&[operation])
    }

    /// How long the value of `key` lives; `None` if it has none. Reads only the index.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn ttl(&self, key: impl AsRef<[u8]>) -> Result<Option<Ttl>> {
        let found = self.engine.attributes(&self.state, key.as_ref(), None)?;
        Ok(found.map(Ttl::of))
    }

    /// Removes the expiry of `key`: its value stays until the next write. Returns whether it had one. One step for all other
    /// writers, as [`update`](Self::update); writes the value anew.
    ///
    /// # Errors
    /// As [`update`](Self::update).
    pub fn persist(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        let mut had_one = false;
        self.try_update(key.as_ref(), |current| {
            let ending = current.filter(|current| current.expires.is_some());
            had_one = ending.is_some();
            Ok(ending.map_or(Update::Keep, |current| {
                Update::PutPersistent(current.value.to_vec())
            }))
        })?;
        Ok(had_one)
    }

    /// Lets the value of `key` live for `ttl` from now on, whatever was said before. Returns whether it has a value. One step
    /// for all other writers, as [`update`](Self::update); writes the value anew.
    ///
    /// # Errors
    /// As [`update`](Self::update); `InvalidArgument` for a `ttl` of zero.
    pub fn expire(&self, key: impl AsRef<[u8]>, ttl: Duration) -> Result<bool> {
        let before = self.try_update(key.as_ref(), |current| {
            Ok(current.map_or(Update::Keep, |current| {
                Update::PutWithTtl(current.value.to_vec(), ttl)
            }))
        })?;
        Ok(before.is_some())
    }
}

impl Snapshot {
    /// How long the value of `key` of `region` lived on at the snapshot; `None` if it had none.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn ttl(&self, region: &Region, key: impl AsRef<[u8]>) -> Result<Option<Ttl>> {
        self.check(region)?;
        let open = Some(&*self.open);
        let found = self.engine.attributes(&region.state, key.as_ref(), open)?;
        Ok(found.map(Ttl::of))
    }
}

impl WriteBatch {
    /// Adds a put of `value` for `key` in `region` that expires `ttl` after the call that writes the batch. With a `ttl` of
    /// zero the write fails with `InvalidArgument`. See [`Region::put_with_ttl`].
    pub fn put_with_ttl(
        &mut self,
        region: &Region,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) {
        self.put(region, key, value);
        self.end(Ends::After(ttl));
    }

    /// Adds a put of `value` for `key` in `region` that expires at `moment`. See [`Region::put_until`].
    pub fn put_until(
        &mut self,
        region: &Region,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        moment: SystemTime,
    ) {
        self.put(region, key, value);
        self.end(Ends::At(timestamp(moment)));
    }

    /// Lets the last put end.
    fn end(&mut self, ends: Ends) {
        if let Some(change) = self.changes.last_mut() {
            change.ends = Some(ends);
        }
    }
}

impl Transaction {
    /// Sets the value of `key` for `ttl` from this call on. That a key expires is no change: a commit does not fail because
    /// of it, even if it writes on from a value that has ended meanwhile ([`Region::update`] reads again then). See
    /// [`Region::put_with_ttl`].
    ///
    /// # Errors
    /// As [`put`](Self::put); `InvalidArgument` for a `ttl` of zero.
    pub fn put_with_ttl(
        &mut self,
        region: &Region,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<()> {
        self.check(region)?;
        let expires = self.engine.expiry_after(ttl)?;
        self.inner
            .put_until(&region.state, key.as_ref(), value.as_ref(), expires)
    }

    /// Sets the value of `key` until `moment` of the wall clock. See [`Region::put_until`].
    ///
    /// ```
    /// # use std::time::{Duration, SystemTime};
    /// # fn main() -> kreon::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let store = kreon::Store::open(folder.path().join("store"))?;
    /// # let region = store.region("r")?;
    /// let moment = SystemTime::now() + Duration::from_secs(3600);
    /// store.transact(|transaction| transaction.put_until(&region, "session", "anna", moment))?;
    /// assert!(matches!(region.ttl("session")?, Some(kreon::Ttl::Left(_))));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn put_until(
        &mut self,
        region: &Region,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        moment: SystemTime,
    ) -> Result<()> {
        self.check(region)?;
        self.inner.put_until(
            &region.state,
            key.as_ref(),
            value.as_ref(),
            timestamp(moment),
        )
    }

    /// How long the value of `key` lives as of when the transaction began, also if the transaction itself has set it
    /// later; `None` if it has none. The key counts as read.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn ttl(&mut self, region: &Region, key: impl AsRef<[u8]>) -> Result<Option<Ttl>> {
        self.check(region)?;
        let now = self.inner.time();
        let found = self.inner.attributes(&region.state, key.as_ref())?;
        Ok(found.map(|attributes| Ttl::of((attributes, now))))
    }
}
