//! The store.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use kreon_device::{FileDevice, FileOptions};
use kreon_engine::{Engine, Operation};

use crate::{
    Durability, Durable, Error, Options, Progress, Region, Result, Snapshot, Stats, VerifyReport,
    WriteBatch,
};

/// An open store: one volume with its regions. Cheap to clone; all clones are the same store, and the
/// last one that is dropped (with its regions, snapshots and scans) closes it.
///
/// It belongs to the process that opened it. In a process that was forked from that one, every call on its handles is
/// `Closed` and does nothing, dropping them does nothing either, [`stats`](Self::stats) is all zero and
/// [`region_names`](Self::region_names) is empty. Nor can such a child open a store (`Closed`), unless it executes a
/// program: locks that threads of the parent waited at cannot be relied on in it. A process that is forked while no store is
/// open may open what it likes.
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
    /// Settings to open a store with.
    pub fn options() -> Options {
        Options::default()
    }

    /// Opens or makes the store at `path` with default settings.
    ///
    /// # Errors
    /// See [`Options::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Options::default().open(path)
    }

    pub(crate) fn open_with(path: &Path, file: FileOptions, options: Options) -> Result<Self> {
        let open = || {
            let (device, _created) = FileDevice::open(path, &file)?;
            Engine::open(Arc::new(device), options.engine)
        };
        let engine = open().map_err(|error: Error| error.within(path.display()))?;
        Ok(Self {
            engine: Arc::new(engine),
            durability: options.durability,
        })
    }

    /// The region called `name`, which is made if it does not exist: a record of the log, as a put is.
    ///
    /// With [`Durability::Sync`] as the store's [durability](crate::Options::durability) it is durable when this returns,
    /// also if another thread has just made it. Otherwise it is durable with the next [`sync`](Self::sync), with anything
    /// durable that is written later, in whatever region, and with a checkpoint. Until then a crash may take it as it may
    /// take a buffered put: with all that came after it, and never without. A number of regions that runs into the hundred
    /// thousands is fine; each takes some 200 bytes of memory, and a page of 4 KiB for each tree once it has pairs.
    ///
    /// # Errors
    /// `InvalidArgument` for an empty name or one over 255 bytes; `OutOfSpace`, `Closed`, `Poisoned`; `Io` with
    /// [`Durability::Sync`]: it is not known whether the region is durable.
    pub fn region(&self, name: &str) -> Result<Region> {
        Ok(self.handle(self.engine.region_with(name, self.durability)?))
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

    /// The names of all regions, ascending.
    pub fn region_names(&self) -> Vec<String> {
        self.engine.region_names()
    }

    /// Drops a region with all its pairs, durably. Handles of it return `Closed` from now on. Reads the
    /// region's index once; its space is free when the call returns, but for what open snapshots and
    /// scans still reach.
    ///
    /// # Errors
    /// `NotFound`; `Corruption` if its index cannot be read; `OutOfSpace`, `Closed`, `Poisoned`, `Io`.
    pub fn drop_region(&self, name: &str) -> Result<()> {
        self.engine.drop_region(name)
    }

    /// Applies a batch: all of it or nothing, for readers and for crashes.
    ///
    /// # Errors
    /// `InvalidArgument` for a key or value over its limit, or a region of another store; `Closed`,
    /// `Poisoned`, `OutOfSpace`: nothing was applied. `Io` with [`Durability::Sync`]: it is not known
    /// whether the batch is durable.
    pub fn write(&self, batch: WriteBatch, durability: Durability) -> Result<()> {
        self.engine.write(&self.operations(&batch)?, durability)
    }

    /// Applies a batch, as [`write`](Self::write), and does not wait for the device: the future ends when
    /// the batch is durable. See [`Durable`] and [`Region::put_async`].
    ///
    /// # Errors
    /// The future's: `InvalidArgument`, `Closed`, `Poisoned`, `OutOfSpace` if nothing was applied;
    /// `Poisoned`, `Closed` if it is not known whether the batch is durable.
    pub fn write_async(&self, batch: WriteBatch) -> Durable {
        match self.operations(&batch) {
            Ok(operations) => self.engine.write_async(&operations),
            Err(error) => Durable::refused(error),
        }
    }

    fn operations<'a>(&self, batch: &'a WriteBatch) -> Result<Vec<Operation<'a>>> {
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
            });
            rest = after;
        }
        Ok(operations)
    }

    /// A snapshot of this moment: what it reads does not change while it is open. Costs less than a
    /// microsecond; open snapshots cost the space of the versions they keep, not memory.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            engine: Arc::clone(&self.engine),
            open: self.engine.snapshot(),
        }
    }

    /// Runs `future` in this thread until it is done. A thread that keeps many
    /// [asynchronous gets](Region::get_async) in flight and has nothing else to do than to wait for them
    /// takes their completions from the device itself in here; under another executor a thread of the store
    /// does that. The future may wait for other things as well, but learns of them up to 1 ms late while
    /// reads are in flight.
    pub fn drive<F: Future>(&self, future: F) -> F::Output {
        self.engine.drive(future)
    }

    /// Makes every write before this call durable: one flush of the device.
    ///
    /// # Errors
    /// `Closed`, `Poisoned`, `Io`.
    pub fn sync(&self) -> Result<()> {
        self.engine.sync()
    }

    /// The future ends when every write before this call is durable: one flush of the device, by the
    /// store's own thread.
    ///
    /// # Errors
    /// The future's: `Closed`, `Poisoned`.
    pub fn sync_async(&self) -> Durable {
        self.engine.sync_async()
    }

    /// Spills the in-memory level and makes the result durable, so that the next open has nothing to
    /// replay.
    ///
    /// # Errors
    /// `OutOfSpace`, `Closed`, `Poisoned`, `Corruption`, `Io`.
    pub fn checkpoint(&self) -> Result<()> {
        self.engine.checkpoint()
    }

    /// Makes every write before this call durable, and writes what is new in the in-memory level as an index, so
    /// that the next open after a crash replays nothing from before this call: what
    /// [`l0_checkpoint_interval`](crate::Options::l0_checkpoint_interval) does now and then. Much cheaper than
    /// [`checkpoint`](Self::checkpoint), but the next open has the index to load. Without space it does nothing.
    ///
    /// # Errors
    /// `Closed`, `Poisoned`, `Io`.
    pub fn checkpoint_l0(&self) -> Result<()> {
        self.engine.sync()?;
        self.engine.background(kreon_engine::Work::Image)
    }

    /// Compacts all regions: [`Region::compact`] for each, with one pass over the log. Regions that are dropped meanwhile
    /// are passed over.
    ///
    /// # Errors
    /// `Busy` (a load into a region is under way), `OutOfSpace`, `Corruption`, `Closed`, `Poisoned`, `Io`: what was not
    /// done yet is as it was.
    pub fn compact(&self) -> Result<()> {
        self.compact_with(|_| ())
    }

    /// As [`compact`](Self::compact), and tells `progress` how far it has come.
    ///
    /// # Errors
    /// As there.
    pub fn compact_with(&self, mut progress: impl FnMut(Progress)) -> Result<()> {
        self.engine.compact_all(&mut progress)
    }

    /// What the store is and did, in numbers.
    pub fn stats(&self) -> Stats {
        self.engine.stats()
    }

    /// Reads everything that the store holds and checks it: superblocks, bitmap, trees, every record of
    /// the log that an index points at, and that the space accounts add up. Spills wait meanwhile. Each record is read
    /// once, in the order of the log and from the device, with what memory the store has: up to a quarter of its frames
    /// say what is to be read.
    ///
    /// # Errors
    /// `Closed`, or what kept it from going on. Damage is not an error but a line of the report.
    pub fn verify(&self) -> Result<VerifyReport> {
        self.engine.verify()
    }

    /// As [`verify`](Self::verify), and calls `progress` now and then, from this thread: with a share of 1 when all is
    /// done.
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

    /// Ends background work, makes all writes durable and gives up the lock on the volume as soon as
    /// the last handle is gone. Later calls on any handle return `Closed`. Closing twice is fine; in a forked child it is
    /// `Closed`.
    ///
    /// # Errors
    /// `Poisoned`, `Io`: what is durable is what the last successful sync left.
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
