//! A device whose reads a test can count and stop, and whose flushes panic when it wants them to.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use kreon_device::{Device, DeviceStats, Read, Write};
use kreon_sim::SimDevice;
use tucana::Result;

/// A device that tells of the first read of so many bytes, when it has been done, and goes on when it is told to.
pub struct HookedDevice {
    inner: Arc<SimDevice>,
    read_bytes: usize,
    stop: Mutex<Option<(Sender<u64>, Receiver<()>)>>,
    /// Where writes began.
    written: Mutex<BTreeSet<u64>>,
    /// How many reads each call of `read` had, since they were taken.
    batches: Mutex<Vec<usize>>,
    /// Flushes panic.
    pub panics: AtomicBool,
}

/// What the test has of it.
pub struct Stop {
    /// The offset of the read.
    pub read: Receiver<u64>,
    /// Lets it go on.
    pub go_on: Sender<()>,
}

impl HookedDevice {
    pub fn new(inner: Arc<SimDevice>, read_bytes: usize) -> (Arc<Self>, Stop) {
        let device = Self {
            inner,
            read_bytes,
            stop: Mutex::default(),
            written: Mutex::default(),
            batches: Mutex::default(),
            panics: AtomicBool::new(false),
        };
        let stop = device.stop_next();
        (Arc::new(device), stop)
    }

    /// Stops at the next such read.
    pub fn stop_next(&self) -> Stop {
        let (told, read) = channel();
        let (go_on, may_go_on) = channel();
        *self.stop.lock().unwrap() = Some((told, may_go_on));
        Stop { read, go_on }
    }

    /// How many reads each call had since the last call of this.
    pub fn take_batches(&self) -> Vec<usize> {
        std::mem::take(&mut self.batches.lock().unwrap())
    }

    /// Whether a write began at `offset` since the last call for it.
    pub fn take_written(&self, offset: u64) -> bool {
        self.written.lock().unwrap().remove(&offset)
    }
}

impl Device for HookedDevice {
    fn block_bytes(&self) -> u32 {
        self.inner.block_bytes()
    }

    fn len_bytes(&self) -> u64 {
        self.inner.len_bytes()
    }

    fn len_bytes_max(&self) -> u64 {
        self.inner.len_bytes_max()
    }

    fn grow(&self, len_bytes: u64) -> Result<()> {
        self.inner.grow(len_bytes)
    }

    fn allocate(&self, offset: u64, len_bytes: u64) -> Result<()> {
        self.inner.allocate(offset, len_bytes)
    }

    fn discard(&self, offset: u64, len_bytes: u64) -> Result<()> {
        self.inner.discard(offset, len_bytes)
    }

    fn read(&self, reads: &mut [Read<'_>]) -> Result<()> {
        self.batches.lock().unwrap().push(reads.len());
        self.inner.read(reads)?;
        let bytes = |read: &Read<'_>| read.buffers.iter().map(|buffer| buffer.len()).sum();
        if let Some(read) = reads.iter().find(|read| self.read_bytes == bytes(read)) {
            let stop = self.stop.lock().unwrap().take();
            if let Some((told, may_go_on)) = stop {
                // Errors: nobody waits for it any more.
                if told.send(read.offset).is_ok() {
                    let _ = may_go_on.recv();
                }
            }
        }
        Ok(())
    }

    fn write(&self, writes: &[Write<'_>]) -> Result<()> {
        let offsets = writes.iter().map(|write| write.offset);
        self.written.lock().unwrap().extend(offsets);
        self.inner.write(writes)
    }

    fn flush(&self) -> Result<()> {
        assert!(!self.panics.load(SeqCst), "a panic in the device");
        self.inner.flush()
    }

    fn stats(&self) -> DeviceStats {
        self.inner.stats()
    }
}
