//! The store.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use kreon_engine::{Engine, Operation, Terms, check_codec};

use crate::batch::Ends;
use crate::{
    Durability, Durable, Error, Options, Progress, Region, RegionOptions, Result, Snapshot, Stats,
    VerifyReport, WriteBatch,
};

/// An open store: one volume with its regions. Clones are handles to the same store; dropping the last handle,
/// including regions, snapshots and scans, closes it.
///
/// Handles are valid only in the process that opened the store. In a forked child every call fails with `Closed`
/// without effect, [`stats`](Self::stats) is all zero, [`region_names`](Self::region_names) is empty, and dropping a
/// handle does nothing. The child cannot open a store either (`Closed`) until it executes a program: threads of the
/// parent may have held locks at the fork. A process forked while no store is open is not restricted.
///
/// ```
/// # fn main() -> kreon::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("store");
/// let store = kreon::Store::open(&path)?;
/// store.region("cities")?.put("chania", "53910")?;
/// store.close()?;
/// assert_eq!(kreon::Store::open(&path)?.region_names(), ["cities"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Store {
    pub(crate) engine: Arc<Engine>,
    pub(crate) durability: Durability,
}

impl Store {
    /// Default settings, to be changed before an opening.
    pub fn options() -> Options {
        Options::default()
    }

    /// Opens the store at `path` with default settings, or creates it.
    ///
    /// # Errors
    /// See [`Options::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Options::default().open(path)
    }

    /// The region called `name`, created if it does not exist. Creation appends a record to the log, like a put.
    ///
    /// With [`Durability::Sync`] as the store's [durability](crate::Options::durability) the region is durable when
    /// this returns, even if another thread has just created it. Otherwise it is as durable as a buffered put: a crash
    /// may lose it together with all later writes, until a [`sync`](Self::sync), a durable write to any region or a
    /// checkpoint. A store can have hundreds of thousands of regions; each takes about 200 bytes of memory, and one
    /// page of 4 KiB for each of its trees.
    ///
    /// # Errors
    /// `InvalidArgument`: the name is empty or longer than 255 bytes. `OutOfSpace`, `Closed`, `Poisoned`. `Io` with
    /// [`Durability::Sync`]: it is unknown whether the region is durable.
    pub fn region(&self, name: &str) -> Result<Region> {
        Ok(self.handle(self.engine.region_with(name, self.durability)?))
    }

    /// The region called `name`, created with `options` if it does not exist; one that exists keeps its own, which
    /// [`Region::set_options`] changes. Otherwise as [`region`](Self::region).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use kreon::{Compression, RegionOptions};
    /// # fn main() -> kreon::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let store = kreon::Store::open(folder.path().join("store"))?;
    /// let options = RegionOptions::new()
    ///     .compression(Compression::Lz4)
    ///     .ttl(Duration::from_secs(3600));
    /// let sessions = store.region_with("sessions", &options)?;
    /// sessions.put("anna", vec![b'x'; 1000])?; // takes a few bytes, and is gone in an hour
    /// assert_eq!(sessions.get("anna")?.unwrap().len(), 1000);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`region`](Self::region); `InvalidArgument` for options out of their range.
    pub fn region_with(&self, name: &str, options: &RegionOptions) -> Result<Region> {
        check_codec(options.compression)?;
        let region = (name, &options.inner()?);
        let state = self.engine.region_with_options(region, self.durability)?;
        Ok(self.handle(state))
    }

    /// The region called `name`.
    ///
    /// # Errors
    /// `NotFound` if there is none; `Closed`.
    pub fn existing_region(&self, name: &str) -> Result<Region> {
        Ok(self.handle(self.engine.existing_region(name)?))
    }

    fn handle(&self, state: Arc<kreon_engine::RegionState>) -> Region {
        Region {
            engine: Arc::clone(&self.engine),
            state,
            durability: self.durability,
        }
    }

    /// What stands behind the store: for the primary of a group, which is opened with
    /// [`mirrored`](crate::Options::mirrored). Not part of the stable API.
    #[doc(hidden)]
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The names of all regions in ascending order.
    pub fn region_names(&self) -> Vec<String> {
        self.engine.region_names()
    }

    /// Drops a region with all its pairs, durably. Existing handles of it return `Closed` from now on. The call reads
    /// the index of the region once; its space is free when the call returns, except what open snapshots and scans
    /// still see.
    ///
    /// # Errors
    /// `NotFound`; `Corruption` if its index cannot be read; `OutOfSpace`, `Closed`, `Poisoned`, `Io`.
    pub fn drop_region(&self, name: &str) -> Result<()> {
        self.engine.drop_region(name)
    }

    /// Applies a batch atomically: readers and crashes see all of it or nothing.
    ///
    /// # Errors
    /// `InvalidArgument` (a key or value over its limit, a time to live of zero, or a region of another store), `Closed`,
    /// `Poisoned`, `OutOfSpace`: nothing was applied. With [`Durability::Sync`], `Poisoned` also if the flush failed: then readers
    /// see the batch, and it is unknown whether it is durable.
    pub fn write(&self, batch: WriteBatch, durability: Durability) -> Result<()> {
        self.engine.write(&self.operations(&batch)?, durability)
    }

    /// Applies a batch like [`write`](Self::write) without waiting for the device. Readers see it when the call
    /// returns; the future completes when it is durable. See [`Durable`] and [`Region::put_async`].
    ///
    /// # Errors
    /// From the future: `InvalidArgument`, `Closed`, `Poisoned`, `OutOfSpace` if nothing was applied; `Poisoned`,
    /// `Closed` if it is unknown whether the batch is durable.
    pub fn write_async(&self, batch: WriteBatch) -> Durable {
        match self.operations(&batch) {
            Ok(operations) => self.engine.write_async(&operations),
            Err(error) => Durable::refused(error),
        }
    }

    fn operations<'a>(&self, batch: &'a WriteBatch) -> Result<Vec<Operation<'a>>> {
        let moment = |ends| match ends {
            Ends::After(ttl) => self.engine.expiry_after(ttl),
            Ends::At(moment) => Ok(moment),
        };
        let mut rest = batch.bytes.as_slice();
        let mut operations = Vec::with_capacity(batch.changes.len());
        for change in &batch.changes {
            if !Arc::ptr_eq(&change.region.engine, &self.engine) {
                return Err(Error::invalid("the batch holds a region of another store"));
            }
            let (key, after) = rest.split_at(change.key_bytes);
            let (value, after) = after.split_at(change.value_bytes.unwrap_or(0));
            let value = change.value_bytes.map(|_| value);
            operations.push(Operation {
                region: &change.region.state,
                key,
                value,
                is_range: change.is_range,
                terms: match change.ends.map(moment).transpose()? {
                    Some(expires) => Terms::until(Some(expires)),
                    None => Terms::default(),
                },
            });
            rest = after;
        }
        Ok(operations)
    }

    /// A snapshot of the store at this moment. It takes less than a microsecond and no memory in proportion to the
    /// data; the versions that an open snapshot sees keep their space on the volume.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            engine: Arc::clone(&self.engine),
            open: self.engine.snapshot(),
        }
    }

    /// Runs `future` in this thread until it completes. Meant for a thread that keeps many [asynchronous
    /// gets](Region::get_async) in flight: while it has nothing else to do, it takes their completions from the device
    /// itself. Under another executor a thread of the store takes them, which costs more thread switches. The future
    /// may wait for other events, but it is polled for them up to 1 ms late while reads are in flight.
    pub fn drive<F: Future>(&self, future: F) -> F::Output {
        self.engine.drive(future)
    }

    /// Makes all earlier writes durable by one flush of the device.
    ///
    /// # Errors
    /// `Closed`, `Poisoned`, `Io`.
    pub fn sync(&self) -> Result<()> {
        self.engine.sync()
    }

    /// Makes all earlier writes durable without waiting: a thread of the store flushes the device once, and the future
    /// completes afterwards.
    ///
    /// # Errors
    /// From the future: `Closed`, `Poisoned`.
    pub fn sync_async(&self) -> Durable {
        self.engine.sync_async()
    }

    /// Spills the in-memory level and makes the result durable, so that the next opening has no log to replay.
    ///
    /// # Errors
    /// `OutOfSpace`, `Closed`, `Poisoned`, `Corruption`, `Io`.
    pub fn checkpoint(&self) -> Result<()> {
        self.engine.checkpoint()
    }

    /// Makes all earlier writes durable and writes an image of the in-memory level now, as
    /// [`l0_checkpoint_interval`](crate::Options::l0_checkpoint_interval) does periodically. An opening after a crash
    /// then loads the image and replays only later writes. Much cheaper than [`checkpoint`](Self::checkpoint). If the
    /// volume has no space for the image, none is written and the call succeeds.
    ///
    /// # Errors
    /// `Closed`, `Poisoned`, `Io`.
    pub fn checkpoint_l0(&self) -> Result<()> {
        self.engine.sync()?;
        self.engine.background(kreon_engine::Work::Image)
    }

    /// Compacts all regions like [`Region::compact`], with one pass over the log. Regions that are dropped meanwhile
    /// are skipped.
    ///
    /// # Errors
    /// `Busy` (a load into a region is in progress), `OutOfSpace`, `Corruption`, `Closed`, `Poisoned`, `Io`: regions
    /// that were not compacted yet are unchanged.
    pub fn compact(&self) -> Result<()> {
        self.compact_with(|_| ())
    }

    /// Like [`compact`](Self::compact), and reports to `progress` from this thread.
    ///
    /// # Errors
    /// As [`compact`](Self::compact).
    pub fn compact_with(&self, mut progress: impl FnMut(Progress)) -> Result<()> {
        self.engine.compact_all(&mut progress)
    }

    /// Current state and counters since the opening.
    pub fn stats(&self) -> Stats {
        self.engine.stats()
    }

    /// Reads and checks everything in the store: superblocks, bitmap, trees, each log record that an index references,
    /// and the space accounts. Spills wait meanwhile. Records are read from the device once each, in log order; the
    /// list of records to read takes up to a quarter of the frames.
    ///
    /// # Errors
    /// `Closed`, or the error that stopped the verification. Damage is reported in the result, not as an error.
    pub fn verify(&self) -> Result<VerifyReport> {
        self.engine.verify()
    }

    /// Like [`verify`](Self::verify), and calls `progress` from time to time from this thread; the last call has a
    /// share of 1.
    ///
    /// # Errors
    /// As [`verify`](Self::verify).
    ///
    /// ```
    /// # fn main() -> kreon::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let store = kreon::Store::open(folder.path().join("store"))?;
    /// let mut share = 0.0;
    /// assert!(store.verify_with(|progress| share = progress.share())?.is_clean());
    /// assert_eq!(share, 1.0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn verify_with(&self, mut progress: impl FnMut(Progress)) -> Result<VerifyReport> {
        self.engine.verify_with(&mut progress)
    }

    /// Stops background work and makes all writes durable. Later calls on any handle return `Closed`; the lock on the
    /// volume is released when the last handle is dropped. A second call succeeds without effect; in a forked child the
    /// call returns `Closed`.
    ///
    /// # Errors
    /// `Poisoned`, `Io`: only what the last successful sync covered is durable.
    pub fn close(&self) -> Result<()> {
        self.engine.close()
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("regions", &self.region_names())
            .finish_non_exhaustive()
    }
}
