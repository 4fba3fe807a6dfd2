//! Opening and closing a store, and its background threads.

use std::sync::Arc;
use std::thread::JoinHandle;

use kreon_base::{Error, ErrorKind, RegionOptions, Result, planted};
use kreon_device::{Backing, Device, ReadOnlyDevice};
use kreon_log::{Show, TakeValue};
use kreon_sync::Mutex;

use super::forked;
use super::status::StatusServer;
use super::subsystems::Subsystems;
use crate::inspect::{Stats, VerifyReport};
use crate::maintenance::Pairs;
use crate::operation::Operation;
use crate::options::{Durability, Options, Work};
use crate::read::{GetTask, KeyBounds, Scan, ValueReader};
use crate::recovery;
use crate::regions::RegionState;
use crate::visibility::{OpenSnapshot, ReadPoint};

/// An open store. Dropping it closes it.
pub struct Engine {
    pub(super) subsystems: Arc<Subsystems>,
    pub(super) threads: Arc<Mutex<Vec<JoinHandle<()>>>>,
    /// Tells others how the store is, if it is to.
    pub(super) status: Mutex<Option<Arc<StatusServer>>>,
}

impl Engine {
    /// Opens the store on `device`, or creates it.
    ///
    /// # Errors
    /// See `kreon::Options::open`.
    pub fn open(device: Arc<dyn Device>, options: Options) -> Result<Self> {
        let split = options.split()?;
        if options.backing == Backing::Ahead {
            kreon_mapping::check_memory(options.memory_bytes as u64)?;
        }
        let device = match options.read_only {
            true => reading(device, &options)?,
            false => device,
        };
        let storage = recovery::open_or_create(device, &options, &split)?;
        let subsystems = Arc::new(Subsystems::new(Arc::new(storage)));
        if options.read_only {
            // Nothing is planned, spilled or collected.
            return Ok(Self {
                subsystems,
                threads: Arc::default(),
                status: Mutex::default(),
            });
        }
        subsystems.space.set_reserve();
        let marker = subsystems.storage.ledger.lock().marker;
        subsystems.space.plan_space();
        let hidden_max = subsystems.space.hidden_max();
        subsystems.space.frozen_at(marker, hidden_max);
        let threads = subsystems.maintenance.start()?;
        let engine = Self {
            subsystems,
            threads: Arc::new(Mutex::new(threads)),
            status: Mutex::default(),
        };
        // What was replayed may fill more than one L0.
        engine.subsystems.maintenance.freeze_if_full();
        engine.subsystems.begin_feed()?;
        Ok(engine)
    }

    /// The region called `name`; makes it if need be, durably.
    pub fn region(&self, name: &str) -> Result<Arc<RegionState>> {
        self.region_with(name, Durability::Sync)
    }

    /// The region called `name`; makes it if need be. With [`Durability::Sync`] it is durable when this returns;
    /// otherwise as a buffered write: a crash may take it, with all that was written behind it.
    pub fn region_with(&self, name: &str, durability: Durability) -> Result<Arc<RegionState>> {
        let options = &RegionOptions::DEFAULT;
        self.region_with_options((name, options), durability)
    }

    /// The region called `name`; makes it with these options if need be, as [`region_with`](Self::region_with). One that
    /// exists keeps its own.
    pub fn region_with_options(
        &self,
        region: (&str, &RegionOptions),
        durability: Durability,
    ) -> Result<Arc<RegionState>> {
        self.subsystems.region_maker.region(region, durability)
    }

    /// Gives `region` other options, durably.
    ///
    /// # Errors
    /// `InvalidArgument`, `Closed`, `OutOfSpace`, `Poisoned`, `Io`: it has the old ones.
    pub fn set_region_options(&self, region: &RegionState, options: &RegionOptions) -> Result<()> {
        self.subsystems.region_maker.set_options(region, options)
    }

    /// The region called `name`.
    pub fn existing_region(&self, name: &str) -> Result<Arc<RegionState>> {
        self.subsystems.storage.check_open()?;
        self.subsystems
            .regions
            .get(name)
            .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no region {name:?}")))
    }

    /// Names of the regions, ascending. None in a forked child.
    pub fn region_names(&self) -> Vec<String> {
        if !self.subsystems.storage.lifecycle.is_home() {
            return Vec::new();
        }
        self.subsystems
            .regions
            .list()
            .iter()
            .map(|region| region.name.to_string())
            .collect()
    }

    /// Drops a region.
    pub fn drop_region(&self, name: &str) -> Result<()> {
        self.subsystems.region_dropper.drop_region(name)
    }

    /// Applies a unit.
    pub fn write(&self, operations: &[Operation<'_>], durability: Durability) -> Result<()> {
        self.subsystems.writer.write(operations, durability)
    }

    /// Loads pairs with ascending keys, all or none; returns how many. Durable when it returns.
    ///
    /// # Errors
    /// Those of a write and of `pairs`; `Busy` during another load into the region.
    pub fn ingest(&self, region: &RegionState, pairs: &mut impl Pairs) -> Result<u64> {
        self.subsystems.loader.ingest(region, pairs)
    }

    /// Shows the value of a key, now or at a snapshot.
    pub fn get<R>(
        &self,
        region: &RegionState,
        key: &[u8],
        snapshot: Option<&OpenSnapshot>,
        show: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        self.get_value(region, key, snapshot, Show(show))
    }

    /// Hands the value of a key to `take`, now or at a snapshot.
    ///
    /// # Errors
    /// As those of a get.
    pub fn get_value<T: TakeValue>(
        &self,
        region: &RegionState,
        key: &[u8],
        snapshot: Option<&OpenSnapshot>,
        take: T,
    ) -> Result<Option<T::Taken>> {
        self.subsystems
            .reader
            .get_value(region, key, self.at(snapshot), take)
    }

    /// The value of a key at a snapshot, to be read a part at a time; `None` if there is none.
    ///
    /// # Errors
    /// As those of a get.
    pub fn value_reader(
        &self,
        region: &Arc<RegionState>,
        key: &[u8],
        snapshot: Arc<OpenSnapshot>,
    ) -> Result<Option<ValueReader>> {
        ValueReader::open(&self.subsystems.reader, region, key, snapshot)
    }

    /// A get that does not wait in a call.
    pub fn get_task(
        &self,
        region: &Arc<RegionState>,
        snapshot: Option<&Arc<OpenSnapshot>>,
    ) -> GetTask {
        GetTask::new(&self.subsystems.reader, region, snapshot)
    }

    /// Runs a future in this thread, which ends the reads that the future's parts begin.
    pub fn drive<F: Future>(&self, future: F) -> F::Output {
        match self.subsystems.storage.lifecycle.is_home() {
            true => self.subsystems.storage.mapping.drive(future),
            false => forked::wait_for(future),
        }
    }

    /// Whether a key has a value, now or at a snapshot.
    pub fn contains(
        &self,
        region: &RegionState,
        key: &[u8],
        snapshot: Option<&OpenSnapshot>,
    ) -> Result<bool> {
        self.subsystems
            .reader
            .contains(region, key, self.at(snapshot))
    }

    /// Hands on the values of many keys with their indexes.
    pub fn multi_get(
        &self,
        region: &RegionState,
        keys: &[&[u8]],
        found: impl FnMut(usize, Vec<u8>),
    ) -> Result<()> {
        self.subsystems
            .reader
            .multi_get(region, keys, self.at(None).settled(), found)
    }

    /// Opens a snapshot.
    pub fn snapshot(&self) -> Arc<OpenSnapshot> {
        Arc::new(OpenSnapshot::new(&self.subsystems.visibility))
    }

    /// A scan of a range at a snapshot.
    pub fn scan(
        &self,
        region: &Arc<RegionState>,
        snapshot: Arc<OpenSnapshot>,
        bounds: KeyBounds,
    ) -> Scan {
        Scan::new(&self.subsystems.reader, region, snapshot, bounds)
    }

    /// Makes all writes so far durable. A store that is open for reading only has none.
    pub fn sync(&self) -> Result<()> {
        if self.subsystems.storage.options.read_only {
            return self.subsystems.storage.check_open();
        }
        self.subsystems.storage.check_writable()?;
        self.subsystems.maintenance.spiller.sync()
    }

    /// Spills everything and makes it durable.
    pub fn checkpoint(&self) -> Result<()> {
        self.subsystems.storage.check_writable()?;
        self.subsystems.maintenance.spiller.checkpoint()?;
        // Merges drop tombstones, so that the space of deletions is free on return, unless a thread merges these trees now.
        match self.subsystems.maintenance.merger.merge_due() {
            // The merge waits for space; until then readers search one more tree.
            Err(error) if error.kind() == ErrorKind::OutOfSpace => Ok(()),
            outcome => outcome,
        }
    }

    /// Does a piece of background work, for [`Background::Driven`](crate::options::Background::Driven).
    ///
    /// # Errors
    /// Those of a write.
    pub fn background(&self, work: Work) -> Result<()> {
        self.subsystems.maintenance.background(work)
    }

    /// Whether trees of some region should be merged: [`Work::Merge`].
    pub fn is_merge_due(&self) -> bool {
        self.subsystems.versions.is_merge_due()
    }

    /// Whether L0 is frozen and waits for its spill to end.
    pub fn is_spill_due(&self) -> bool {
        self.subsystems.maintenance.spiller.is_due()
    }

    /// Numbers; all zero in a forked child.
    pub fn stats(&self) -> Stats {
        match self.subsystems.storage.lifecycle.is_home() {
            true => self.subsystems.inspector.stats(),
            false => Stats::default(),
        }
    }

    /// Checks everything.
    pub fn verify(&self) -> Result<VerifyReport> {
        self.verify_with(&mut |_| ())
    }

    /// Ends background work and makes all writes durable.
    pub fn close(&self) -> Result<()> {
        self.subsystems.storage.lifecycle.check_home()?;
        let mut threads = self.threads.lock();
        if !self.subsystems.storage.lifecycle.close() {
            return Ok(());
        }
        // Waits for writers that entered the gate before the store was closed.
        drop(self.subsystems.visibility.gate.close());
        self.subsystems.storage.mapping.quiesce();
        let outcome = match self.subsystems.storage.options.read_only {
            true => Ok(()),
            false => self.subsystems.maintenance.spiller.settle(),
        };
        self.join(&mut threads);
        // Nothing is written from here on: the lock is given up.
        let _changes = self.subsystems.versions.lock_changes();
        let _ledger = self.subsystems.storage.ledger.lock();
        self.subsystems.storage.poison.close();
        self.subsystems.storage.log.close();
        outcome.and(self.subsystems.storage.device.unlock())
    }
}

impl Engine {
    /// Waits for the background threads, which end because the store was closed.
    pub(super) fn join(&self, threads: &mut Vec<JoinHandle<()>>) {
        self.subsystems.maintenance.wake_all();
        if let Some(status) = self.status.lock().take() {
            status.stop();
        }
        let this = std::thread::current().id();
        for thread in threads.drain(..) {
            // A thread of the store may be the one that closes it: it woke the task that held the last handle.
            if thread.thread().id() != this && thread.join().is_err() {
                tracing::error!("a background thread had panicked");
            }
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if !self.subsystems.storage.lifecycle.is_home() {
            return forked::leak((&self.subsystems, &self.threads));
        }
        if let Err(error) = self.close() {
            tracing::warn!(%error, "closing the store failed");
        }
    }
}

/// A device that nothing is written to.
///
/// # Errors
/// `InvalidArgument` for the primary of a group.
fn reading(device: Arc<dyn Device>, options: &Options) -> Result<Arc<dyn Device>> {
    if options.mirroring.is_given() {
        return Err(Error::invalid(
            "the primary of a group is not opened for reading only",
        ));
    }
    let reading: Arc<dyn Device> = Arc::new(ReadOnlyDevice::new(Arc::clone(&device)));
    planted!(ReadOnlyOpenWrites => let reading = device);
    Ok(reading)
}

impl Engine {
    fn at(&self, snapshot: Option<&OpenSnapshot>) -> ReadPoint<'_> {
        match snapshot {
            Some(snapshot) => snapshot.point(),
            None => self.subsystems.reader.now(),
        }
    }
}
