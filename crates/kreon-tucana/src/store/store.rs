//! A store: what a user sees.

use std::collections::BTreeSet;
use std::sync::Arc;

use kreon_base::{Error, PageNo, Result, SEGMENT_BYTES, SegmentId};
use kreon_device::Device;

use super::home::{LOG, MOVED};
use super::opening;
use super::options::{Durability, Options};
use super::shared::Shared;
use super::threads::Threads;
use super::volume_log::VolumeLog;
use crate::tree::{Direction, Scan, ScanRange, Snapshot, TreeStats, Verified};

/// A scan of a store in progress: [`Iterator`] over results of pairs.
pub struct StoreScan<'a>(Scan<'a, VolumeLog>);

/// The state of a store at one moment.
pub struct StoreSnapshot<'a>(Snapshot<'a, VolumeLog>);

/// Pairs of keys and values on a device. Any number of threads use a store at once.
///
/// A write is visible when its call returns. It is durable then, too, with [`Durability::Sync`]; with `Buffered` when a
/// [`sync`](Self::sync) or [`commit`](Self::commit) that began after that returns, or when a thread of the store has
/// committed. After a crash the store holds a prefix of all writes in their order, with all that were durable.
///
/// Dropping a store does not commit.
pub struct Store {
    shared: Arc<Shared>,
    _threads: Threads,
}

impl Store {
    /// Opens the store on a device, or makes one if the device is empty.
    ///
    /// # Errors
    /// `InvalidArgument` if the device holds something else, or the memory is too little; `Corruption`; `OutOfSpace`; `Io`.
    pub fn open(device: Arc<dyn Device>, options: &Options) -> Result<Self> {
        let opened = opening::open(device, options)?;
        let shared = Arc::new(Shared::begin(opened, options)?);
        let threads = Threads::start(&shared)?;
        Ok(Self {
            shared,
            _threads: threads,
        })
    }

    /// Gives a key a value, as durably as [`Options::durability`] says. Returns whether it had one.
    ///
    /// # Errors
    /// `InvalidArgument` for a key of more than 1 KiB, or a record of more than a segment. `OutOfSpace`: nothing has changed;
    /// deletions are possible still. `Poisoned` after a failed write or flush. Those of the device.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.put_with(key, value, self.shared.options.durability)
    }

    /// The same with a durability of its own.
    ///
    /// # Errors
    /// As [`put`](Self::put). After an error of the device with `Sync` it is unknown whether the write is durable.
    pub fn put_with(&self, key: &[u8], value: &[u8], durability: Durability) -> Result<bool> {
        self.shared.write(key, Some(value), durability)
    }

    /// Deletes a key, as durably as [`Options::durability`] says. Returns whether it had a value.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete(&self, key: &[u8]) -> Result<bool> {
        self.delete_with(key, self.shared.options.durability)
    }

    /// The same with a durability of its own.
    ///
    /// # Errors
    /// As [`put_with`](Self::put_with).
    pub fn delete_with(&self, key: &[u8], durability: Durability) -> Result<bool> {
        self.shared.write(key, None, durability)
    }

    /// The value of a key.
    ///
    /// # Errors
    /// Those of the device; `Corruption`.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.shared.tree.get(key)
    }

    /// Lends the value of a key to `use_value`, without a copy. Keep it short: the page of the value cannot leave the memory
    /// meanwhile.
    ///
    /// # Errors
    /// Those of the device; `Corruption`.
    pub fn get_with<R>(&self, key: &[u8], use_value: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        self.shared.tree.get_with(key, use_value)
    }

    /// The pairs of a range, as they are when the scan comes to their leaf. What is replaced meanwhile in a leaf that it is
    /// at takes space until it goes on.
    pub fn scan(&self, range: ScanRange, direction: Direction) -> StoreScan<'_> {
        StoreScan(self.shared.tree.scan(range, direction))
    }

    /// The state at this moment. While it lives, nothing that it shows gives its space back.
    pub fn snapshot(&self) -> StoreSnapshot<'_> {
        StoreSnapshot(self.shared.tree.freeze())
    }

    /// Makes everything durable that was written before the call, through the log: one flush, shared with others that
    /// wait.
    ///
    /// # Errors
    /// Those of the device: what is durable is unknown then, and the store takes no more writes until it is opened again.
    pub fn sync(&self) -> Result<()> {
        self.shared.sync()
    }

    /// Makes everything durable that was written before the call, in the tree, so that the next opening replays none of it.
    /// Writers go on meanwhile, except for the moment in which the epoch ends.
    ///
    /// # Errors
    /// `OutOfSpace`: nothing has happened. Those of the device: the store takes no more writes then. Open it again: what was
    /// durable before is there.
    pub fn commit(&self) -> Result<()> {
        self.shared.commit()
    }

    /// Commits, and reads all of what is durable then: every node, every record that a leaf points at, whether exactly the
    /// pages of nodes and catalogue are recorded as in use, and whether the live bytes of each segment of the log are those of
    /// its records. Commits wait meanwhile, and so do writers as soon as they need one.
    ///
    /// # Errors
    /// `Corruption` that names the page; those of a commit.
    pub fn verify(&self) -> Result<Verified> {
        let kept = self.shared.commit_and_keep()?;
        let found = kept.snapshot.verify()?;
        let mut reached: Vec<PageNo> = found.pages.clone();
        reached.extend(&kept.durable.catalogue_pages);
        reached.sort_unstable();
        let mut recorded: Vec<PageNo> = self.shared.home.allocator.lock().live_pages().collect();
        recorded.sort_unstable();
        let is_double = reached.array_windows().any(|[a, b]| a == b);
        if is_double || reached != recorded {
            return Err(Error::corruption(format!(
                "{} pages are recorded as in use, nodes and catalogue have {}",
                recorded.len(),
                reached.len()
            )));
        }
        self.verify_live_bytes(&found)?;
        Ok(found)
    }

    fn verify_live_bytes(&self, found: &Verified) -> Result<()> {
        let allocator = self.shared.home.allocator.lock();
        let logs = [LOG, MOVED].map(|log| allocator.log_segments(log));
        let segments: BTreeSet<SegmentId> = logs.iter().flatten().map(|(id, _)| *id).collect();
        if let Some(unknown) = found.live_bytes.keys().find(|id| !segments.contains(id)) {
            return Err(Error::corruption(format!(
                "leaves point into {unknown}, which is not of the log"
            )));
        }
        for segment in segments {
            let reached = found.live_bytes.get(&segment).copied().unwrap_or(0);
            let recorded = u64::from(allocator.live_bytes(segment));
            if reached != recorded {
                return Err(Error::corruption(format!(
                    "{recorded} bytes of {segment} are recorded as live, leaves point at {reached}"
                )));
            }
        }
        Ok(())
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
        self.shared.tree.stats()
    }

    /// Bytes of the volume that segments take which hold something, are reserved for the log or on standby for the next opening, or
    /// wait for readers and snapshots.
    pub fn used_bytes(&self) -> u64 {
        let allocator = self.shared.home.allocator.lock();
        let taken = allocator.segment_count() - allocator.free_segment_count();
        u64::from(taken) * SEGMENT_BYTES
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
