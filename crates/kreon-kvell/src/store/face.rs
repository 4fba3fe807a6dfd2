//! The handle of a store.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kreon_base::{Error, PAGE_BYTES, Result};
use kreon_device::{Device, FileDevice, FileOptions, processors};

use super::handle::{Handle, REGION_BYTES, check_may_wait};
use super::options::Options;
use super::running::{Crew, Running};
use super::stats::Stats;
use super::verifying::verify_store;
use crate::format::{SUPERBLOCK_SLOTS, is_volume};
use crate::opening::{Opening, open};
use crate::verify::VerifyReport;

/// Time between two writes of the durable marks.
const MARKS_EVERY: Duration = Duration::from_secs(10);

/// An open store. A handle: clones are the same store, which is closed when the last one is dropped, regions included.
#[derive(Clone)]
pub struct Store {
    pub(super) handle: Arc<Handle>,
}

impl Options {
    /// Opens the store in the file or block device at `path`. Costs reading all extents in use, or after a clean close
    /// the image of the index alone. A device may hold anything behind its first four pages.
    ///
    /// # Errors
    /// `InvalidArgument`: an option out of its range, or a volume of something else. `NotFound`: no store, and
    /// [`create`](Self::create) is off. `Busy`: open elsewhere. `Corruption`: an item that may have been the newest of its
    /// key, an extent's header or every superblock does not verify. `OutOfSpace`, `Io`.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Store> {
        self.check()?;
        let file = FileOptions {
            create: self.create,
            len_bytes_max: self.volume_bytes_max,
            ..FileOptions::default()
        };
        let (device, _) = FileDevice::open(path, &file)?;
        self.open_on(Arc::new(device))
    }

    /// Opens the store on a device.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_on(&self, device: Arc<dyn Device>) -> Result<Store> {
        self.check()?;
        let block_bytes = device.block_bytes() as usize;
        let opening = Opening {
            partitions: self.partitions,
            atomic_bytes: self.atomic_bytes.unwrap_or(block_bytes),
            index_key_bytes: REGION_BYTES + self.index_key_bytes,
            memory_bytes: self.memory_bytes,
            is_lossless: self.assume_power_loss_protection,
            store: None,
            creates: self.create,
            formats: self.format,
            threads: processors(),
        };
        let opened = open(device, &opening)?;
        let crew = Crew {
            workers: self.workers_for(opened.partitions.len()),
            depth: self.depth,
            marks_every: MARKS_EVERY,
        };
        Ok(Store {
            handle: Arc::new(Handle::new(Running::start(opened, crew)?)),
        })
    }
}

impl Store {
    /// Opens the store at `path`, or creates it, with the default [`Options`].
    ///
    /// # Errors
    /// See [`Options::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Options::default().open(path)
    }

    /// Whether a store of KVell is in the file or block device at `path`, which need not be whole. Reads four pages, without
    /// opening the store; a file that is not there, or is shorter, has none.
    ///
    /// # Errors
    /// `Io`.
    pub fn is_at(path: impl AsRef<Path>) -> Result<bool> {
        let path = path.as_ref();
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            file => file,
        };
        let mut pages = Vec::new();
        let read = file.and_then(|file| {
            file.take((SUPERBLOCK_SLOTS * PAGE_BYTES) as u64)
                .read_to_end(&mut pages)
        });
        read.map_err(|error| Error::io(format!("read {}", path.display()), error))?;
        Ok(is_volume(&pages))
    }

    /// Makes all changes durable that were acknowledged before the call, in all regions. Does not wait for later ones.
    /// Costs a flush of the device, or two if one is under way; nothing if all is durable.
    ///
    /// # Errors
    /// `Closed`, `Poisoned`.
    pub fn sync(&self) -> Result<()> {
        let shared = self.handle.shared()?;
        check_may_wait()?;
        shared.sync()
    }

    /// Reads all of the volume that is in use and checks it, beside running requests: superblocks, headers, that each slot
    /// is free or has a whole item that its partition knows, and that each key leads to a whole item of its own. The
    /// content of large values is not read together. Takes 8 MiB of memory and a bit for each slot beyond `memory_bytes`.
    ///
    /// # Errors
    /// `Closed`; `Poisoned`: what is in memory is not all on the device. Damage is reported in the result, not as an error.
    pub fn verify(&self) -> Result<VerifyReport> {
        verify_store(self.handle.shared()?)
    }

    /// Runs `future` in this thread until it completes. Meant for a thread that keeps many requests in flight, as futures
    /// ([`Region::get_async`](super::Region::get_async)): it does the I/O of one worker itself meanwhile, which saves the switches between the two. With one [worker](Options::workers)
    /// that is all I/O of the store; with more, so many threads may drive futures at a time, and further ones wait for
    /// the workers. The future may wait for other events too. While it computes, requests of others in the worker's
    /// partitions wait.
    ///
    /// ```
    /// # fn main() -> kvell::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let store = kvell::Store::open(folder.path().join("store"))?;
    /// let region = store.region("r")?;
    /// let length = store.drive(async {
    ///     region.put_async("key", "value", kvell::Durability::Sync).await?;
    ///     let value = region.get_async("key").await?;
    ///     Ok::<_, kvell::Error>(value.map_or(0, |value| value.len()))
    /// })??;
    /// assert_eq!(length, 5);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` in a driven future or a wake-up on a worker. Calls of the future that would wait for the store,
    /// as plain gets and puts, scans and `sync`, fail with the same.
    pub fn drive<F: Future>(&self, future: F) -> Result<F::Output> {
        self.handle.drive(future)
    }

    /// What the store holds and takes; nothing in a forked process.
    pub fn stats(&self) -> Stats {
        let shared = self.handle.shared();
        shared.map(|shared| shared.stats()).unwrap_or_default()
    }

    /// Makes all changes durable and closes the store, for all its handles: later calls fail with `Closed`, those under way
    /// end first. When it returns, the volume is unlocked and nothing is written to it any more. A further close waits for
    /// the first and has its outcome. Must not be called by what a future's wake-up runs.
    ///
    /// # Errors
    /// `Poisoned` or `Io`: it is unknown which of the last changes are durable; the store is closed nonetheless.
    pub fn close(self) -> Result<()> {
        self.handle.close()
    }
}
