//! Transactions.

use std::fmt;
use std::sync::Arc;

use kreon_engine::{Engine, Isolation, KeyBounds, Own, Savepoint, prefix_bounds};

use crate::{Durability, Error, KeyRange, Region, Result, Store, Value};

/// Reads at one moment with own writes on top, and a commit of all writes as one unit that fails with
/// [`Conflict`](crate::ErrorKind::Conflict) if another writer came between. Made by [`Store::transaction`]; dropping it
/// forgets its writes.
///
/// Transactions are optimistic: none waits for another, and plain writes take part like small transactions. The
/// [`Isolation`] says which changes by others are conflicts. After a conflict the whole transaction is to be run again,
/// from its reads on, which [`Store::transact`] does.
///
/// ```
/// # fn main() -> kreon::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let store = kreon::Store::open(folder.path().join("store"))?;
/// let region = store.region("r")?;
/// region.put("a", "1")?;
/// let mut transaction = store.transaction();
/// let a = transaction.get(&region, "a")?.unwrap();
/// transaction.put(&region, "b", a)?;
/// transaction.commit(kreon::Durability::Buffered)?;
/// assert!(region.contains("b")?);
///
/// let mut late = store.transaction();
/// late.get(&region, "a")?;
/// late.put(&region, "b", "2")?;
/// region.put("a", "3")?; // by somebody else, meanwhile
/// let outcome = late.commit(kreon::Durability::Buffered);
/// assert_eq!(outcome.unwrap_err().kind(), kreon::ErrorKind::Conflict);
/// # Ok(())
/// # }
/// ```
///
/// A transaction keeps a snapshot open and takes memory, outside the store's budget, for what it is to write and for
/// keys and bounds that it has read: at most [`TransactionOptions::bytes_max`]. A commit stops all writers while it
/// looks for changes, in memory only: about as long as a get for each key, and as a scan of those keys of a read range
/// that are in the in-memory level.
pub struct Transaction {
    pub(crate) engine: Arc<Engine>,
    pub(crate) inner: kreon_engine::Transaction,
}

/// Settings of a transaction.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TransactionOptions {
    /// Which changes by others are conflicts. Default: [`Isolation::Serializable`].
    pub isolation: Isolation,
    /// Most memory that the transaction takes, in bytes, up to 4 GiB; a call beyond it fails with `InvalidArgument`
    /// and changes nothing. Default: 64 MiB.
    pub bytes_max: usize,
    /// How often [`Store::transact_with`] runs its closure, at least once. Default: 100.
    pub tries_max: u32,
}

impl Default for TransactionOptions {
    fn default() -> Self {
        Self {
            isolation: Isolation::default(),
            bytes_max: kreon_engine::TRANSACTION_BYTES_MAX,
            tries_max: 100,
        }
    }
}

impl TransactionOptions {
    /// The same with this isolation.
    #[must_use]
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = isolation;
        self
    }

    /// The same with this limit of memory, in bytes.
    #[must_use]
    pub fn bytes_max(mut self, bytes_max: usize) -> Self {
        self.bytes_max = bytes_max;
        self
    }

    /// The same with this number of tries.
    #[must_use]
    pub fn tries_max(mut self, tries_max: u32) -> Self {
        self.tries_max = tries_max;
        self
    }
}

impl Store {
    /// A serializable transaction that begins now.
    pub fn transaction(&self) -> Transaction {
        self.transaction_with(TransactionOptions::default())
    }

    /// A transaction that begins now.
    pub fn transaction_with(&self, options: TransactionOptions) -> Transaction {
        let inner = self
            .engine
            .transaction(options.isolation, options.bytes_max);
        Transaction {
            engine: Arc::clone(&self.engine),
            inner,
        }
    }

    /// Runs `work` in a serializable transaction and commits it with the store's [durability](crate::Options::durability).
    /// After a conflict both are done again, up to 100 times in all, with growing pauses of up to some milliseconds. An
    /// error of `work` rolls back and is returned.
    ///
    /// ```
    /// # fn main() -> kreon::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let store = kreon::Store::open(folder.path().join("store"))?;
    /// let jobs = store.region("jobs")?;
    /// jobs.put("1", "")?;
    /// let taken = store.transact(|t| {
    ///     let Some((job, _)) = t.range(&jobs, ..)?.next().transpose()? else {
    ///         return Ok(None);
    ///     };
    ///     t.delete(&jobs, &job)?;
    ///     Ok(Some(job))
    /// })?;
    /// assert_eq!(taken.as_deref(), Some(b"1".as_slice()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of `work` and of [`Transaction::commit`]; `Conflict` after the last try.
    pub fn transact<R>(&self, work: impl FnMut(&mut Transaction) -> Result<R>) -> Result<R> {
        self.transact_with(TransactionOptions::default(), self.durability, work)
    }

    /// As [`transact`](Self::transact), with settings.
    ///
    /// # Errors
    /// As [`transact`](Self::transact).
    pub fn transact_with<R>(
        &self,
        options: TransactionOptions,
        durability: Durability,
        mut work: impl FnMut(&mut Transaction) -> Result<R>,
    ) -> Result<R> {
        let mut pause = Pause::default();
        for _ in 1..options.tries_max {
            match self.try_transact(options, durability, &mut work) {
                Err(error) if error.kind() == crate::ErrorKind::Conflict => pause.wait(),
                outcome => return outcome,
            }
        }
        self.try_transact(options, durability, &mut work)
    }

    fn try_transact<R>(
        &self,
        options: TransactionOptions,
        durability: Durability,
        work: &mut impl FnMut(&mut Transaction) -> Result<R>,
    ) -> Result<R> {
        let mut transaction = self.transaction_with(options);
        let done = work(&mut transaction)?;
        transaction.commit(durability)?;
        Ok(done)
    }
}

/// Pauses between tries: none at first, then twice as long each time.
#[derive(Default)]
struct Pause {
    tries: u32,
}

impl Pause {
    /// Tries before the first sleep.
    const AT_ONCE: u32 = 4;
    /// Doublings of 8 us.
    const DOUBLINGS_MAX: u32 = 9;

    fn wait(&mut self) {
        self.tries += 1;
        if self.tries <= Self::AT_ONCE {
            return std::thread::yield_now();
        }
        let doublings = (self.tries - Self::AT_ONCE).min(Self::DOUBLINGS_MAX);
        std::thread::sleep(std::time::Duration::from_micros(8 << doublings));
    }
}

impl Transaction {
    /// The value of `key`: as this transaction has set it, else as it was when the transaction began.
    ///
    /// # Errors
    /// As [`Region::get`]; `InvalidArgument` for a region of another store, and if the transaction has no memory left.
    pub fn get(&mut self, region: &Region, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.check(region)?;
        let found = self.inner.get(&region.state, key.as_ref(), Own)?;
        Ok(found.map(Value::from))
    }

    /// The value of `key`, as [`get`](Self::get). A change of the key by others is a conflict with either isolation, as
    /// if this transaction wrote it.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_for_update(
        &mut self,
        region: &Region,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<Value>> {
        self.check(region)?;
        let found = self
            .inner
            .get_for_update(&region.state, key.as_ref(), Own)?;
        Ok(found.map(Value::from))
    }

    /// The pairs of a range as [`get`](Self::get) would find them, in key order and from both ends. A serializable
    /// transaction has read the keys that the scan has passed, whether they had a value or not; if it was taken from
    /// both ends, the whole range.
    ///
    /// # Errors
    /// `InvalidArgument` for a region of another store, and if the transaction has no memory left.
    pub fn range(&mut self, region: &Region, range: impl KeyRange) -> Result<TransactionScan<'_>> {
        self.scan(region, range.into_bounds())
    }

    /// The pairs whose keys start with `prefix`, like [`range`](Self::range).
    ///
    /// # Errors
    /// As [`range`](Self::range).
    pub fn prefix(
        &mut self,
        region: &Region,
        prefix: impl AsRef<[u8]>,
    ) -> Result<TransactionScan<'_>> {
        self.scan(region, prefix_bounds(prefix.as_ref()))
    }

    fn scan(&mut self, region: &Region, bounds: KeyBounds) -> Result<TransactionScan<'_>> {
        self.check(region)?;
        self.inner.scan(&region.state, bounds).map(TransactionScan)
    }

    /// Sets the value of `key`.
    ///
    /// # Errors
    /// `InvalidArgument`: key over 64 KiB, value over 1 GiB, a region of another store, or no memory left; `Closed`: the
    /// region was dropped. The transaction is as before.
    pub fn put(
        &mut self,
        region: &Region,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.check(region)?;
        self.inner.put(&region.state, key.as_ref(), value.as_ref())
    }

    /// Deletes `key`.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete(&mut self, region: &Region, key: impl AsRef<[u8]>) -> Result<()> {
        self.check(region)?;
        self.inner.delete(&region.state, key.as_ref())
    }

    /// Deletes all keys of a range, including those that this transaction has put so far. Any change in the range by
    /// others is a conflict with either isolation.
    ///
    /// # Errors
    /// As [`put`](Self::put); `InvalidArgument` for a bound over 64 KiB.
    pub fn delete_range(&mut self, region: &Region, range: impl KeyRange) -> Result<()> {
        self.check(region)?;
        self.inner.delete_range(&region.state, range.into_bounds())
    }

    /// A state of the writes to [return to](Self::roll_back_to). As long as there is one, the transaction also keeps
    /// what later writes replace.
    pub fn set_savepoint(&mut self) -> Savepoint {
        self.inner.set_savepoint()
    }

    /// Undoes all writes since `savepoint`. It stays; later savepoints are gone. What was read since still counts as
    /// read.
    ///
    /// ```
    /// # fn main() -> kreon::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let store = kreon::Store::open(folder.path().join("store"))?;
    /// # let region = store.region("r")?;
    /// let mut transaction = store.transaction();
    /// transaction.put(&region, "a", "1")?;
    /// let savepoint = transaction.set_savepoint();
    /// transaction.delete(&region, "a")?;
    /// transaction.roll_back_to(savepoint)?;
    /// assert!(transaction.get(&region, "a")?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if the savepoint is gone.
    pub fn roll_back_to(&mut self, savepoint: Savepoint) -> Result<()> {
        self.inner.roll_back_to(savepoint)
    }

    /// Applies all writes atomically: readers and crashes see all of them or none. Without writes it does nothing.
    ///
    /// # Errors
    /// `Conflict`: others have changed what this transaction has written or, if serializable, read; run it again.
    /// `Closed` (also if a region that it has read or written was dropped), `Poisoned`, `OutOfSpace`, `Corruption`:
    /// nothing was applied. With [`Durability::Sync`], `Poisoned` also if the flush failed: then readers see the
    /// transaction, and it is unknown whether it is durable.
    pub fn commit(self, durability: Durability) -> Result<()> {
        self.engine.commit(self.inner, durability)
    }

    pub(crate) fn check(&self, region: &Region) -> Result<()> {
        match Arc::ptr_eq(&self.engine, &region.engine) {
            true => Ok(()),
            false => Err(Error::invalid(
                "the region is of another store than the transaction",
            )),
        }
    }
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").finish_non_exhaustive()
    }
}

/// The pairs of a range as a [`Transaction`] sees them. After an error the scan ends.
#[must_use = "a scan does nothing until it is iterated"]
pub struct TransactionScan<'t>(kreon_engine::TransactionScan<'t>);

impl TransactionScan<'_> {
    fn step(&mut self, is_from_front: bool) -> Option<Result<(Value, Value)>> {
        let pair = self.0.next(is_from_front).transpose()?;
        Some(pair.map(|(key, value)| (Value::from(key), Value::from(value))))
    }
}

impl Iterator for TransactionScan<'_> {
    type Item = Result<(Value, Value)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(true)
    }
}

impl DoubleEndedIterator for TransactionScan<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(false)
    }
}

impl std::iter::FusedIterator for TransactionScan<'_> {}

impl fmt::Debug for TransactionScan<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransactionScan").finish_non_exhaustive()
    }
}
