//! A device in memory that can fail.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use kreon_base::{Error, PAGE_BYTES, PageBytes, Result};
use kreon_device::{Device, DeviceStats, Read, Write};
use parking_lot::Mutex;

pub(super) struct RamDevice {
    len_bytes: u64,
    pages: Mutex<HashMap<u64, Box<PageBytes>>>,
    pub fails: AtomicBool,
    pub reads: AtomicU64,
    /// Called by every write before anything else.
    pub before_write: Mutex<Option<Box<dyn FnMut() + Send>>>,
}

impl RamDevice {
    pub(super) fn new(len_bytes: u64) -> Self {
        Self {
            len_bytes,
            pages: Mutex::default(),
            fails: AtomicBool::new(false),
            reads: AtomicU64::new(0),
            before_write: Mutex::default(),
        }
    }

    /// Changes what it holds.
    pub(super) fn damage(&self, page: u64, change: impl FnOnce(&mut PageBytes)) {
        let mut pages = self.pages.lock();
        change(pages.entry(page).or_insert_with(|| Box::new([0; _])));
    }

    fn check(&self) -> Result<()> {
        match self.fails.load(SeqCst) {
            true => Err(Error::io("as told", io::Error::from_raw_os_error(5))),
            false => Ok(()),
        }
    }
}

impl Device for RamDevice {
    fn block_bytes(&self) -> u32 {
        4096
    }
    fn len_bytes(&self) -> u64 {
        self.len_bytes
    }
    fn len_bytes_max(&self) -> u64 {
        self.len_bytes
    }
    fn grow(&self, _: u64) -> Result<()> {
        Ok(())
    }
    fn allocate(&self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }
    fn discard(&self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }
    fn read(&self, reads: &mut [Read<'_>]) -> Result<()> {
        self.check()?;
        let pages = self.pages.lock();
        for read in reads {
            let mut page = read.offset / PAGE_BYTES as u64;
            for buffer in &mut read.buffers {
                for part in buffer.chunks_mut(PAGE_BYTES) {
                    match pages.get(&page) {
                        Some(bytes) => part.copy_from_slice(&bytes[..part.len()]),
                        None => part.fill(0),
                    }
                    self.reads.fetch_add(1, SeqCst);
                    page += 1;
                }
            }
            read.outcome = Ok(());
        }
        Ok(())
    }
    fn write(&self, writes: &[Write<'_>]) -> Result<()> {
        if let Some(call) = &mut *self.before_write.lock() {
            call();
        }
        self.check()?;
        let mut pages = self.pages.lock();
        for write in writes {
            let mut page = write.offset / PAGE_BYTES as u64;
            for buffer in &write.buffers {
                for part in buffer.chunks(PAGE_BYTES) {
                    let whole: &PageBytes = part.try_into().expect("whole pages");
                    pages.insert(page, Box::new(*whole));
                    page += 1;
                }
            }
        }
        Ok(())
    }
    fn flush(&self) -> Result<()> {
        self.check()
    }
    fn stats(&self) -> DeviceStats {
        DeviceStats::default()
    }
}
