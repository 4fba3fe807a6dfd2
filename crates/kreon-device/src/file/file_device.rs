//! A file or a block device as a [`Device`].

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use kreon_base::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use rustix::fs::FlockOperation;
use rustix::io::{Errno, retry_on_intr};

#[cfg(feature = "comparison")]
use super::file_map::{FileMap, MapAdvice};
use super::file_queue::FileQueue;
use super::kind::Kind;
use super::opening;
use super::options::{Facility, FileOptions};
use crate::bounds::{BLOCK_BYTES_MAX, Bounds};
use crate::device::{Device, Read, ReadQueue, Write};
use crate::immediate::Immediate;
use crate::process::OpenDevice;
use crate::read_only::read_only;
use crate::stats::{DeviceCounters, DeviceStats};
use crate::status::StatusSocket;
use crate::system;
use crate::transfer::{self, RingPool, RingQueue, RingTransfers, Slice, TransferBatch};
use crate::transfer_queue::{QUEUE_DEPTH_MAX, Transfer, TransferQueue};

/// Most transfers that one call may have in flight.
const RING_DEPTH_MAX: u32 = 4096;

/// Most reads that an asynchronous queue has in flight: enough to keep any device busy, few enough to keep its internal
/// queues short (`KVell 4.3`).
const READ_QUEUE_DEPTH: u32 = 256;

/// A volume in a file or on a block device, locked while it is open.
///
/// It uses direct I/O and `io_uring` where the system supports them, with a fallback for each. Threads do I/O
/// concurrently without a common lock. A file is created sparse; growing it takes no space.
///
/// In a process forked from the one that opened it every call fails with `Closed` without effect, and dropping it keeps
/// the lock.
pub struct FileDevice {
    open: OpenDevice,
    path: PathBuf,
    file: OwnedFd,
    kind: Kind,
    block_bytes: u32,
    is_direct: bool,
    read_only: bool,
    len_bytes_max: u64,
    /// Only raised, with `growing` held.
    len_bytes: Arc<AtomicU64>,
    growing: Mutex<()>,
    rings: RingPool,
    counters: Arc<DeviceCounters>,
    /// Set when the file system has refused `fallocate`, or hole punching, as not supported.
    cannot_allocate: AtomicBool,
    cannot_discard: AtomicBool,
}

impl FileDevice {
    /// Opens and locks `path`; the flag is true if the file was created.
    ///
    /// Errors: `NotFound` (no such file, or no folder to create it in), `InvalidArgument` (a directory, a pipe, or
    /// options out of range), `Busy` (open already, in this process or another, or the block device is mounted; the
    /// message names the process where the system tells it), `Io` (permission), `Closed` (in a process forked from one that
    /// had a device open: its inherited locks are unreliable).
    pub fn open(path: impl AsRef<Path>, options: &FileOptions) -> Result<(Self, bool)> {
        let path = path.as_ref();
        check_options(options)?;
        let open = OpenDevice::new()?;
        let (file, kind, created) = opening::open(path, options)?;
        let len_bytes = kind
            .len_bytes(file.as_fd())
            .map_err(|e| Error::io(format!("measure {}", path.display()), e.into()))?;
        let (is_direct, block_bytes) = choose_block(&file, kind, path, options);
        let device = Self {
            open,
            path: path.to_owned(),
            file,
            kind,
            block_bytes,
            is_direct,
            read_only: options.read_only,
            len_bytes_max: match kind {
                Kind::Regular => options.len_bytes_max.unwrap_or(u64::MAX),
                Kind::BlockDevice => len_bytes,
            },
            len_bytes: Arc::new(AtomicU64::new(len_bytes)),
            growing: Mutex::new(()),
            rings: match options.ring {
                Facility::Auto => RingPool::new(options.ring_depth),
                Facility::Off => RingPool::none(),
            },
            counters: Arc::default(),
            cannot_allocate: AtomicBool::new(kind == Kind::BlockDevice),
            cannot_discard: AtomicBool::new(false),
        };
        Ok((device, created))
    }

    /// Path of the file or block device.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether I/O bypasses the page cache.
    pub fn is_direct(&self) -> bool {
        self.is_direct
    }

    /// Whether calls with several transfers go through `io_uring`.
    pub fn has_rings(&self) -> bool {
        self.rings.is_available()
    }

    /// A socket on which to tell others how the volume is, which [`ask_status`](crate::ask_status) finds by its path.
    ///
    /// # Errors
    /// `Io`: the system has none, or the name is taken.
    pub fn status_socket(&self) -> Result<StatusSocket> {
        StatusSocket::bind(&self.file)
    }

    fn bounds(&self) -> Bounds {
        Bounds {
            block_bytes: self.block_bytes,
            len_bytes: self.len_bytes(),
        }
    }

    fn check_writable(&self) -> Result<()> {
        self.open.home().check()?;
        if self.read_only {
            return Err(self.named(&read_only()));
        }
        Ok(())
    }

    /// Whether the calling process may use the device.
    pub(super) fn is_home(&self) -> bool {
        self.open.home().is_this()
    }

    /// Checks a transfer as the calls that carry it out do.
    pub(super) fn check_transfer(&self, transfer: &Transfer) -> Result<()> {
        match transfer {
            Transfer::Write { .. } => self.check_writable()?,
            Transfer::Read { .. } | Transfer::Flush => self.open.home().check()?,
        }
        let checked = transfer.bytes().and_then(|bytes| match bytes {
            Some((offset, bytes)) => self.bounds().check_buffers(offset, [bytes]),
            None => Ok(()),
        });
        checked.map_err(|error| self.named(&error))
    }

    fn ring_transfers(&self, depth: usize) -> std::io::Result<RingTransfers> {
        let file = self.file.try_clone()?;
        let counters = Arc::clone(&self.counters);
        let (home, depth) = (*self.open.home(), depth as u32);
        RingTransfers::new(file, self.block_bytes, depth, home, counters)
    }

    fn carry_out<S: Slice>(&self, mut batch: TransferBatch<S>) -> Vec<(usize, Error)> {
        transfer::run(&mut batch, self.file.as_fd(), &self.rings, &self.counters);
        batch.into_failures()
    }

    /// `error` with the path in its message.
    pub(super) fn named(&self, error: &Error) -> Error {
        error.within(self.path.display())
    }

    /// Allocates or discards a range. If the system does not support it, sets `cannot` and succeeds.
    fn change_blocks(
        &self,
        action: &str,
        change: impl Fn(BorrowedFd<'_>, u64, u64) -> rustix::io::Result<()>,
        (offset, len_bytes): (u64, u64),
        cannot: &AtomicBool,
    ) -> Result<()> {
        self.check_writable()?;
        let range = self.bounds().check_range(offset, len_bytes);
        if range.map_err(|e| self.named(&e))?.is_empty() || cannot.load(Relaxed) {
            return Ok(());
        }
        match retry_on_intr(|| change(self.file.as_fd(), offset, len_bytes)) {
            Ok(()) => Ok(()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                if !cannot.swap(true, Relaxed) {
                    tracing::info!(path = %self.path.display(), "the file system cannot {action}");
                }
                Ok(())
            }
            Err(error) => {
                let text = format!("{action} {len_bytes} bytes at {offset}");
                Err(self.named(&Error::io(text, error.into())))
            }
        }
    }
}

impl Device for FileDevice {
    fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    fn len_bytes(&self) -> u64 {
        self.len_bytes.load(Acquire)
    }

    fn len_bytes_max(&self) -> u64 {
        self.len_bytes_max
    }

    fn free_bytes(&self) -> Option<u64> {
        if self.kind == Kind::BlockDevice {
            return None;
        }
        let about = rustix::fs::fstatvfs(&self.file).ok()?;
        Some(about.f_bavail.saturating_mul(about.f_frsize))
    }

    fn grow(&self, len_bytes: u64) -> Result<()> {
        self.check_writable()?;
        let _growing = self.growing.lock();
        if len_bytes <= self.len_bytes() {
            return Ok(());
        }
        if len_bytes > self.len_bytes_max {
            return Err(self.named(&Error::new(
                ErrorKind::OutOfSpace,
                format!(
                    "cannot grow to {len_bytes} bytes, the limit is {}",
                    self.len_bytes_max
                ),
            )));
        }
        let grown = retry_on_intr(|| rustix::fs::ftruncate(&self.file, len_bytes));
        let action = || format!("grow to {len_bytes} bytes");
        grown.map_err(|error| self.named(&Error::io(action(), error.into())))?;
        self.len_bytes.store(len_bytes, Release);
        Ok(())
    }

    fn allocate(&self, offset: u64, len_bytes: u64) -> Result<()> {
        self.counters.allocations.fetch_add(1, Relaxed);
        let range = (offset, len_bytes);
        self.change_blocks("allocate", system::allocate, range, &self.cannot_allocate)
    }

    fn discard(&self, offset: u64, len_bytes: u64) -> Result<()> {
        self.counters.discards.fetch_add(1, Relaxed);
        let range = (offset, len_bytes);
        self.change_blocks("discard", system::discard, range, &self.cannot_discard)
    }

    fn read(&self, reads: &mut [Read<'_>]) -> Result<()> {
        self.open.home().check()?;
        let bounds = self.bounds();
        let batch = TransferBatch::of_reads(reads, self.block_bytes, |read| {
            bounds.check_buffers(read.offset, read.buffers.iter().map(|b| &**b))
        });
        let failures = self.carry_out(batch);
        for read in reads.iter_mut() {
            read.outcome = Ok(());
        }
        let mut first = Ok(());
        for (request, error) in failures.into_iter().rev() {
            let error = self.named(&error);
            if let Some(read) = reads.get_mut(request) {
                read.outcome = Err(error.clone());
            }
            first = Err(error);
        }
        first
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.open.home().check()?;
        self.bounds()
            .check_buffers(offset, [&*buffer])
            .map_err(|e| self.named(&e))?;
        self.counters.depart(1);
        let moved = rustix::io::pread(&self.file, &mut *buffer, offset);
        self.counters.arrive(1);
        if moved == Ok(buffer.len()) {
            self.counters.reads.add(buffer.len() as u64);
            return Ok(());
        }
        // A failed or short read is repeated by the general path, the only one that decides about retries and
        // continuation.
        self.read(&mut [Read::new(offset, buffer)])
    }

    fn write(&self, writes: &[Write<'_>]) -> Result<()> {
        self.check_writable()?;
        let bounds = self.bounds();
        for write in writes {
            let checked = bounds.check_buffers(write.offset, write.buffers.iter().copied());
            checked.map_err(|e| self.named(&e))?;
        }
        let batch = TransferBatch::of_writes(writes, self.block_bytes);
        match self.carry_out(batch).first() {
            None => Ok(()),
            Some((_, error)) => Err(self.named(error)),
        }
    }

    fn flush(&self) -> Result<()> {
        self.open.home().check()?;
        self.counters.flushes.fetch_add(1, Relaxed);
        // Never repeated, not even when interrupted: after a failure the kernel may have dropped the pages that it
        // could not write, and the next call would succeed without them.
        system::flush(self.file.as_fd())
            .map_err(|error| self.named(&Error::io("flush", error.into())))
    }

    fn read_queue(&self) -> Option<Box<dyn ReadQueue>> {
        if !self.has_rings() || !self.open.home().is_this() {
            return None;
        }
        let file = self.file.try_clone().ok()?;
        match RingQueue::new(file, READ_QUEUE_DEPTH, Arc::clone(&self.counters)) {
            Ok(queue) => Some(Box::new(queue)),
            Err(error) => {
                tracing::info!(%error, "no io_uring for asynchronous reads");
                None
            }
        }
    }

    fn transfer_queue(self: Arc<Self>, depth: usize) -> Box<dyn TransferQueue> {
        let depth = depth.clamp(1, QUEUE_DEPTH_MAX);
        if !self.has_rings() || !self.is_home() {
            return Box::new(Immediate::new(self, depth));
        }
        match self.ring_transfers(depth) {
            Ok(ring) => Box::new(FileQueue::new(self, ring, depth)),
            Err(error) => {
                tracing::info!(%error, "no io_uring for a queue of transfers");
                Box::new(Immediate::new(self, depth))
            }
        }
    }

    #[cfg(feature = "comparison")]
    fn map(&self, len_bytes_max: u64, advice: MapAdvice) -> Result<Option<FileMap>> {
        if self.is_direct {
            return Ok(None);
        }
        let len_bytes_max = len_bytes_max.min(self.len_bytes_max);
        FileMap::new(
            &self.file,
            Arc::clone(&self.len_bytes),
            len_bytes_max,
            advice,
        )
        .map(Some)
        .map_err(|error| self.named(&error))
    }

    fn unlock(&self) -> Result<()> {
        self.open.home().check()?;
        rustix::fs::flock(&self.file, FlockOperation::Unlock)
            .map_err(|e| Error::io(format!("unlock {}", self.path.display()), e.into()))
    }

    fn stats(&self) -> DeviceStats {
        self.counters.read()
    }
}

impl Drop for FileDevice {
    fn drop(&mut self) {
        // A forked child shares the open file and so the lock.
        if !self.open.home().is_this() {
            return;
        }
        // The kernel may keep the file open a moment longer (for a ring that is being torn down), and the lock with it;
        // the next opening must not find it locked.
        if let Err(error) = rustix::fs::flock(&self.file, FlockOperation::Unlock) {
            tracing::debug!(path = %self.path.display(), %error, "cannot unlock");
        }
    }
}

impl fmt::Debug for FileDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileDevice")
            .field("path", &self.path)
            .field("kind", &self.kind)
            .field("len_bytes", &self.len_bytes())
            .field("block_bytes", &self.block_bytes)
            .field("is_direct", &self.is_direct)
            .finish_non_exhaustive()
    }
}

fn check_options(options: &FileOptions) -> Result<()> {
    if !(1..=RING_DEPTH_MAX).contains(&options.ring_depth) {
        return Err(Error::invalid(format!(
            "a ring depth of {} is not within 1..={RING_DEPTH_MAX}",
            options.ring_depth
        )));
    }
    if options.create && options.read_only {
        return Err(Error::invalid("cannot create a file for reading only"));
    }
    Ok(())
}

/// Whether I/O is direct, and the block size in bytes.
fn choose_block(file: &OwnedFd, kind: Kind, path: &Path, options: &FileOptions) -> (bool, u32) {
    if options.direct == Facility::Auto {
        match system::make_direct(file.as_fd(), kind) {
            Ok(block_bytes) => {
                let least = options.block_bytes_min.min(BLOCK_BYTES_MAX);
                return (true, block_bytes.max(least.next_power_of_two()));
            }
            Err(reason) => {
                let path = path.display();
                tracing::info!(%path, reason, "no direct I/O; going through the page cache");
            }
        }
    }
    // The store has its own frames, so readahead by the kernel would read pages that nobody requested.
    if let Err(error) = system::no_readahead(file.as_fd()) {
        tracing::debug!(path = %path.display(), %error, "cannot switch readahead off");
    }
    // The page cache writes whole pages, so a smaller write can tear its neighbours.
    (false, BLOCK_BYTES_MAX)
}
