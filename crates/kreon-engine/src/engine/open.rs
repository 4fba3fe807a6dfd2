//! Opening and closing a store, and its background threads.

use crate::sync::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::sync::Mutex;
use kreon_base::{Error, ErrorKind, Lsn, Result};
use kreon_device::{AlignedBuf, Backing, Device, HomeProcess};
use kreon_l0::L0;

use super::collect::Collector;
use super::core::Core;
use super::forked;
use super::get_task::GetTask;
use super::ingest::Pairs;
use super::region::RegionState;
use super::reorganise::Reorganiser;
use super::replayed;
use super::scan::{KeyBounds, Scan};
use super::scan_memory::ScanMemory;
use super::snapshot::OpenSnapshot;
use super::stats::Stats;
use super::threads::start_threads;
use super::verify::VerifyReport;
use super::write::Operation;
use crate::level::Levels;
use crate::options::{Background, Durability, Options, Work};
use crate::recovery::{self, Replayed};
use crate::spill::Spilled;

/// A log longer than this behind the marker is spilled at close, so that the next open is quick.
const REPLAY_BYTES_AT_CLOSE_MAX: u64 = 8 << 20;

/// An open store. Dropping it closes it.
pub struct Engine {
    core: Arc<Core>,
    threads: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl Engine {
    /// Opens the store on `device`, or makes it.
    ///
    /// # Errors
    /// See `kreon::Options::open`.
    pub fn open(device: Arc<dyn Device>, options: Options) -> Result<Self> {
        let split = options.split()?;
        if options.backing == Backing::Ahead {
            kreon_mapping::check_memory(options.memory_bytes as u64)?;
        }
        let inline_max = options.inline_value_bytes_max;
        let insert = |l0: &L0, records: &[Replayed<'_>]| replayed::insert(l0, records, inline_max);
        let parts = recovery::open_or_create(device, &options, &split, &insert)?;
        let core = Arc::new(Core::new(parts, options, split));
        core.set_reserve();
        let marker = core.parts.ledger.lock().marker;
        core.plan_space();
        core.collector.frozen_at(marker, core.hidden_max());
        let threads = match core.options.background {
            Background::Threads => start_threads(&core)?,
            Background::Inline | Background::Driven => Vec::new(),
        };
        let engine = Self {
            core,
            threads: Arc::new(Mutex::new(threads)),
        };
        // What was replayed may fill more than one L0.
        engine.core.rotate();
        Ok(engine)
    }

    /// The region called `name`; makes it if need be, durably.
    pub fn region(&self, name: &str) -> Result<Arc<RegionState>> {
        self.region_with(name, Durability::Sync)
    }

    /// The region called `name`; makes it if need be. With [`Durability::Sync`] it is durable when this returns;
    /// otherwise as a buffered write: a crash may take it, with all that was written behind it.
    pub fn region_with(&self, name: &str, durability: Durability) -> Result<Arc<RegionState>> {
        self.core.region(name, durability)
    }

    /// The region called `name`.
    pub fn existing_region(&self, name: &str) -> Result<Arc<RegionState>> {
        self.core.check_open()?;
        self.core
            .regions
            .get(name)
            .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no region {name:?}")))
    }

    /// Names of the regions, ascending. None in a forked child.
    pub fn region_names(&self) -> Vec<String> {
        if !self.core.home.is_this() {
            return Vec::new();
        }
        self.core
            .regions
            .list()
            .iter()
            .map(|region| region.name.to_string())
            .collect()
    }

    /// Drops a region.
    pub fn drop_region(&self, name: &str) -> Result<()> {
        self.core.drop_region(name)
    }

    /// Applies a unit.
    pub fn write(&self, operations: &[Operation<'_>], durability: Durability) -> Result<()> {
        self.core.write(operations, durability)
    }

    /// Loads pairs with ascending keys, all or none; returns how many. Durable when it returns.
    ///
    /// # Errors
    /// Those of a write and of `pairs`; `Busy` during another load into the region.
    pub fn ingest(&self, region: &RegionState, pairs: &mut impl Pairs) -> Result<u64> {
        self.core.ingest(region, pairs)
    }

    /// Shows the value of a key, now or at a snapshot.
    pub fn get<R>(
        &self,
        region: &RegionState,
        key: &[u8],
        snapshot: Option<&OpenSnapshot>,
        show: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        self.core.get(region, key, at(snapshot), show)
    }

    /// A get that does not wait in a call.
    pub fn get_task(
        &self,
        region: &Arc<RegionState>,
        snapshot: Option<&Arc<OpenSnapshot>>,
    ) -> GetTask {
        GetTask::new(&self.core, region, snapshot)
    }

    /// Runs a future in this thread, which ends the reads that the future's parts begin.
    pub fn drive<F: Future>(&self, future: F) -> F::Output {
        match self.core.home.is_this() {
            true => self.core.parts.mapping.drive(future),
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
        self.core.contains(region, key, at(snapshot))
    }

    /// Hands on the values of many keys with their indexes.
    pub fn multi_get(
        &self,
        region: &RegionState,
        keys: &[&[u8]],
        found: impl FnMut(usize, Vec<u8>),
    ) -> Result<()> {
        self.core.multi_get(region, keys, Lsn::MAX, found)
    }

    /// Opens a snapshot.
    pub fn snapshot(&self) -> Arc<OpenSnapshot> {
        Arc::new(OpenSnapshot::new(&self.core))
    }

    /// A scan of a range at a snapshot.
    pub fn scan(
        &self,
        region: &Arc<RegionState>,
        snapshot: Arc<OpenSnapshot>,
        bounds: KeyBounds,
    ) -> Scan {
        Scan::new(&self.core, region, snapshot, bounds)
    }

    /// Makes all writes so far durable.
    pub fn sync(&self) -> Result<()> {
        self.core.check_writable()?;
        self.core.sync()
    }

    /// Spills everything and makes it durable.
    pub fn checkpoint(&self) -> Result<()> {
        self.core.check_writable()?;
        self.core.checkpoint()?;
        // What deletions free is free when this returns, unless a thread merges their trees at this moment.
        match self.core.merge_due() {
            // Readers look into one more tree until there is room.
            Err(error) if error.kind() == ErrorKind::OutOfSpace => Ok(()),
            outcome => outcome,
        }
    }

    /// Does a piece of background work, for [`Background::Driven`].
    ///
    /// # Errors
    /// Those of a write.
    pub fn background(&self, work: Work) -> Result<()> {
        self.core.background(work)
    }

    /// Hands the log to the device without a flush, as background work does every 100 ms: buffered writes
    /// so far survive the end of the process, but not that of the machine.
    ///
    /// # Errors
    /// Those of a write.
    pub fn write_out(&self) -> Result<()> {
        self.core.background(Work::WriteOut)
    }

    /// Whether trees of some region should be merged: [`Work::Merge`].
    pub fn is_merge_due(&self) -> bool {
        self.core.is_merge_due()
    }

    /// Whether L0 is frozen and waits for its spill to end.
    pub fn is_spill_due(&self) -> bool {
        self.core.is_spill_due()
    }

    /// Numbers; all zero in a forked child.
    pub fn stats(&self) -> Stats {
        match self.core.home.is_this() {
            true => self.core.stats(),
            false => Stats::default(),
        }
    }

    /// Checks everything.
    pub fn verify(&self) -> Result<VerifyReport> {
        self.verify_with(&mut |_| ())
    }

    /// Ends background work and makes all writes durable.
    pub fn close(&self) -> Result<()> {
        self.core.home.check()?;
        let mut threads = self.threads.lock();
        if self.core.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        // Whoever was let in before the store was closed is waited for.
        drop(self.core.gate.close());
        self.core.parts.mapping.quiesce();
        let outcome = self.core.settle();
        self.core.spill_wanted.call();
        self.core.merge_wanted.call();
        self.core.images.wake();
        self.core.collector.wanted.call();
        self.core.reorganiser.wanted.call();
        self.core.parts.log.wake_writer();
        self.core.parts.log.wake_flusher();
        self.core.parts.log.wake_stock();
        let this = std::thread::current().id();
        for thread in threads.drain(..) {
            // A task that a thread of the store woke may have been the last who had the store open.
            if thread.thread().id() != this && thread.join().is_err() {
                tracing::error!("a background thread had panicked");
            }
        }
        // Nothing is written from here on: the lock is given up.
        let _upkeep = self.core.upkeep.lock();
        let _ledger = self.core.parts.ledger.lock();
        self.core.parts.poison.close();
        self.core.parts.log.close();
        outcome.and(self.core.parts.device.unlock())
    }
}

impl Engine {
    /// What its handles share.
    pub(super) fn core(&self) -> &Arc<Core> {
        &self.core
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if !self.core.home.is_this() {
            return forked::leak((&self.core, &self.threads));
        }
        if let Err(error) = self.close() {
            tracing::warn!(%error, "closing the store failed");
        }
    }
}

fn at(snapshot: Option<&OpenSnapshot>) -> Lsn {
    snapshot.map_or(Lsn::MAX, OpenSnapshot::lsn)
}

impl Core {
    fn new(
        parts: crate::state::Parts,
        options: Options,
        split: crate::options::MemorySplit,
    ) -> Self {
        let regions = super::region::Regions::default();
        for (id, entry) in parts.ledger.lock().regions.iter() {
            regions.insert(RegionState::new(id, Arc::clone(&entry.name), Lsn(0)));
        }
        let reorganiser = Reorganiser::new(options.credit_bytes());
        let collector = Collector::new(
            parts.moved.lock().end(),
            AlignedBuf::with_backing(split.collector_bytes / 2, options.backing),
        );
        Self {
            home: HomeProcess::this(),
            parts,
            options,
            split,
            collector,
            reorganiser,
            scan_memory: ScanMemory::new(split.scan_bytes),
            regions,
            gate: Default::default(),
            units: Default::default(),
            snapshots: Default::default(),
            pressure: Default::default(),
            holds: Default::default(),
            upkeep: Mutex::default(),
            rotation: Mutex::default(),
            giving_back: Mutex::default(),
            images: Default::default(),
            gets: Default::default(),
            scanned_dead: Default::default(),
            spill_wanted: Default::default(),
            merge_wanted: Default::default(),
            merges: Default::default(),
            closed: AtomicBool::new(false),
        }
    }

    /// One flush for everything that was written so far.
    fn sync(&self) -> Result<()> {
        let log = &self.parts.log;
        log.expect_wait();
        log.sync(log.tail())
            .inspect_err(|error| self.parts.poison.set(error))
    }

    /// Spills L0 and L0' and makes the result durable.
    pub fn checkpoint(&self) -> Result<()> {
        // First what is being spilled already, then the rest.
        self.spill_frozen()?;
        self.freeze(0);
        self.spill_frozen()?;
        self.take_in_made()
    }

    /// Makes a checkpoint of regions that were made behind the last spill, with the marker behind their records if the
    /// log has nothing else there.
    fn take_in_made(&self) -> Result<()> {
        if self.parts.made.is_empty() {
            return Ok(());
        }
        let _upkeep = self.upkeep.lock();
        let change = Spilled::nothing(Levels::clone(&self.parts.views.load().levels));
        let marker = self.quiet_tail();
        match self.commit_spill(change, |ledger| ledger.advance(marker), true) {
            // The log keeps them.
            Err(error) if error.kind() == ErrorKind::OutOfSpace => self.sync(),
            outcome => outcome,
        }
    }

    /// Before closing: nothing that was acknowledged stays in memory alone.
    fn settle(self: &Arc<Self>) -> Result<()> {
        self.parts.poison.check()?;
        self.sync()?;
        let marker = self.parts.ledger.lock().marker;
        if self.parts.log.tail().0.saturating_sub(marker.0) > REPLAY_BYTES_AT_CLOSE_MAX {
            // A full volume cannot spill; everything is durable in the log all the same.
            match self.checkpoint() {
                Err(error) if error.kind() == ErrorKind::OutOfSpace => {}
                outcome => return outcome,
            }
        }
        Ok(())
    }
}
