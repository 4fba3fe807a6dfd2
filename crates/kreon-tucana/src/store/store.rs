//! A store: what a user sees.

use std::sync::{Arc, OnceLock};

use kreon_base::{Error, ErrorKind, PageNo, Result};
use kreon_device::Device;
use parking_lot::Mutex;

use super::commit::{Durable, commit};
use super::home::Home;
use super::opening::{self, Opened, Options};
use super::volume_log::VolumeLog;
use crate::tree::{Direction, Scan, ScanRange, Snapshot, Tree, TreeStats, Verified};

/// A scan of a store in progress: [`Iterator`] over results of pairs.
pub struct StoreScan<'a>(Scan<'a, VolumeLog>);

/// The state of a store at one moment.
pub struct StoreSnapshot<'a>(Snapshot<'a, VolumeLog>);

/// Pairs of keys and values on a device. Any number of threads use a store at once.
///
/// A write is visible when its call returns, and durable when a [`commit`](Self::commit) that began after that returns. After a
/// crash the store is as at the last commit that ended, or at one that was under way: never anything between.
///
/// Dropping a store does not commit.
pub struct Store {
    home: Home,
    log: Arc<VolumeLog>,
    tree: Tree<VolumeLog>,
    /// Held by the thread that commits.
    durable: Mutex<Durable>,
    /// Why nothing is committed any more.
    poison: OnceLock<Error>,
}

impl Store {
    /// Opens the store on a device, or makes one if the device is empty.
    ///
    /// # Errors
    /// `InvalidArgument` if the device holds something else, or the memory is too little; `Corruption`; `OutOfSpace`; `Io`.
    pub fn open(device: Arc<dyn Device>, options: &Options) -> Result<Self> {
        let Opened {
            home,
            log,
            tree,
            durable,
            is_new,
        } = opening::open(device, options)?;
        let store = Self {
            home,
            log,
            tree,
            durable: Mutex::new(durable),
            poison: OnceLock::new(),
        };
        if is_new {
            store.commit()?;
        }
        Ok(store)
    }

    /// Gives a key a value. Returns whether it had one. Commits first if changed nodes have taken all their frames.
    ///
    /// # Errors
    /// `InvalidArgument` for a key of more than 1 KiB, or a record of more than a segment. `OutOfSpace`: nothing has changed.
    /// `Poisoned` after a failed commit. Those of the device.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.write(|| self.tree.put(key, value))
    }

    /// Deletes a key. Returns whether it had a value.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete(&self, key: &[u8]) -> Result<bool> {
        self.write(|| self.tree.delete(key))
    }

    fn write(&self, write: impl Fn() -> Result<bool>) -> Result<bool> {
        self.check()?;
        loop {
            match write() {
                Err(error) if error.kind() == ErrorKind::OutOfSpace && self.tree.wants_freeze() => {
                    self.commit()?;
                }
                outcome => return outcome,
            }
        }
    }

    /// The value of a key.
    ///
    /// # Errors
    /// Those of the device; `Corruption`.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.tree.get(key)
    }

    /// Lends the value of a key to `use_value`, without a copy. Keep it short: the page of the value cannot leave the memory
    /// meanwhile.
    ///
    /// # Errors
    /// Those of the device; `Corruption`.
    pub fn get_with<R>(&self, key: &[u8], use_value: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        self.tree.get_with(key, use_value)
    }

    /// The pairs of a range, as they are when the scan comes to their leaf.
    pub fn scan(&self, range: ScanRange, direction: Direction) -> StoreScan<'_> {
        StoreScan(self.tree.scan(range, direction))
    }

    /// The state at this moment.
    pub fn snapshot(&self) -> StoreSnapshot<'_> {
        StoreSnapshot(self.tree.freeze())
    }

    /// Makes everything durable that was written before the call. Writers go on meanwhile, except for the moment in which the
    /// epoch ends.
    ///
    /// # Errors
    /// Those of the device, `OutOfSpace`. The store takes no more writes then: open it again. What was committed before
    /// is there; of this commit all is there or nothing.
    pub fn commit(&self) -> Result<()> {
        let mut durable = self.durable.lock();
        self.commit_alone(&mut durable, false).map(drop)
    }

    /// Commits, and returns the state that is durable then, if it is kept.
    fn commit_alone(
        &self,
        durable: &mut Durable,
        is_kept: bool,
    ) -> Result<Option<Snapshot<'_, VolumeLog>>> {
        self.check()?;
        let outcome = self.make_durable(durable, is_kept);
        outcome.inspect_err(|error| drop(self.poison.set(error.clone())))
    }

    /// Commits, and reads all of what is durable then: every node, every record that a leaf points at, and whether exactly the
    /// pages of nodes and catalogue are recorded as in use. Writers go on meanwhile; commits wait.
    ///
    /// # Errors
    /// `Corruption` that names the page; those of a commit.
    pub fn verify(&self) -> Result<Verified> {
        let mut durable = self.durable.lock();
        let snapshot = self.commit_alone(&mut durable, true)?;
        let found = snapshot.map_or_else(|| Ok(Verified::default()), |kept| kept.verify())?;
        let mut reached: Vec<PageNo> = found.pages.clone();
        reached.extend(&durable.catalogue_pages);
        reached.sort_unstable();
        let mut recorded: Vec<PageNo> = self.home.allocator.lock().live_pages().collect();
        recorded.sort_unstable();
        let is_double = reached.array_windows().any(|[a, b]| a == b);
        if is_double || reached != recorded {
            return Err(Error::corruption(format!(
                "{} pages are recorded as in use, nodes and catalogue have {}",
                recorded.len(),
                reached.len()
            )));
        }
        Ok(found)
    }

    fn make_durable(
        &self,
        durable: &mut Durable,
        is_kept: bool,
    ) -> Result<Option<Snapshot<'_, VolumeLog>>> {
        let snapshot = self.tree.freeze();
        if opening::is_used_up(snapshot.epoch(), self.home.incarnation) {
            return Err(Error::new(
                ErrorKind::OutOfSpace,
                "this opening has used its epochs: open the store again",
            ));
        }
        // One that is kept keeps its pages from being used again.
        let kept = is_kept.then_some(snapshot);
        // Every record that the frozen nodes point at was appended before the freeze.
        let log_end = self.log.write_out()?;
        let Some(publication) = self.tree.publish_frozen()? else {
            return Ok(kept);
        };
        let unneeded = commit(&self.home, durable, &publication, log_end)?;
        self.tree.committed(&publication);
        self.home.allocator.lock().release_pages(&unneeded)?;
        Ok(kept)
    }

    fn check(&self) -> Result<()> {
        match self.poison.get() {
            Some(cause) => Err(Error::new(ErrorKind::Poisoned, cause.to_string())),
            None => Ok(()),
        }
    }

    /// Commits and closes.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn close(self) -> Result<()> {
        self.commit()
    }

    /// What its tree did since it was opened.
    pub fn stats(&self) -> TreeStats {
        self.tree.stats()
    }

    /// Bytes of the volume that segments take which hold something.
    pub fn used_bytes(&self) -> u64 {
        let segments = self.home.allocator.lock().taken_segments().len() as u64;
        segments * kreon_base::SEGMENT_BYTES
    }
}

impl StoreSnapshot<'_> {
    /// The value of a key.
    ///
    /// # Errors
    /// Those of the device; `Corruption`.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.0.get(key)
    }

    /// The pairs of a range.
    pub fn scan(&self, range: ScanRange, direction: Direction) -> StoreScan<'_> {
        StoreScan(self.0.scan(range, direction))
    }
}

impl Iterator for StoreScan<'_> {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}
