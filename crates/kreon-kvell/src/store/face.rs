//! The handle of a store.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kreon_base::{Error, Result};
use kreon_device::{Device, FileDevice, FileOptions, processors};

use super::handle::{Handle, REGION_BYTES, check_may_wait};
use super::options::Options;
use super::region::Region;
use super::running::{Crew, Running};
use super::stats::Stats;
use super::verifying::verify_store;
use crate::opening::{Opening, open};
use crate::partition::Durability;
use crate::verify::VerifyReport;

/// The region of the names and numbers of regions.
const NAMES: u32 = 0;

/// Longest name of a region, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// Time between two writes of the durable marks.
const MARKS_EVERY: Duration = Duration::from_secs(10);

/// An open store. A handle: clones are the same store, which is closed when the last one is dropped, regions included.
#[derive(Clone)]
pub struct Store {
    handle: Arc<Handle>,
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

    /// The region called `name`, created if it does not exist, durably.
    ///
    /// # Errors
    /// `InvalidArgument`: the name is empty or longer than 255 bytes. `OutOfSpace`, `Closed`, `Poisoned`, `Io`.
    pub fn region(&self, name: &str) -> Result<Region> {
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            let bytes = name.len();
            let text = format!("a region's name of {bytes} bytes: 1 to {NAME_BYTES_MAX} will do");
            return Err(Error::invalid(text));
        }
        // In a forked child another thread may hold the lock for ever.
        self.handle.shared()?;
        let names = self.numbered(NAMES);
        let _one_at_a_time = self.handle.making.lock();
        if let Some(number) = number_of(&names, name.as_bytes())? {
            return Ok(self.numbered(number));
        }
        // The count first: a power cut between the two leaves a number without a name, not two names with one number.
        let number = number_of(&names, b"")?.unwrap_or_default() + 1;
        names.put(b"", number.to_le_bytes(), Durability::Sync)?;
        names.put(name.as_bytes(), number.to_le_bytes(), Durability::Sync)?;
        Ok(self.numbered(number))
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

    fn numbered(&self, number: u32) -> Region {
        Region::new(Arc::clone(&self.handle), number)
    }
}

fn number_of(names: &Region, name: &[u8]) -> Result<Option<u32>> {
    let Some(value) = names.get(name)? else {
        return Ok(None);
    };
    let number = value.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    let damaged = || Error::corruption("the number of a region has too few bytes");
    number.map(Some).ok_or_else(damaged)
}
