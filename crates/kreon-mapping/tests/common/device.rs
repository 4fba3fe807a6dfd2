//! The device in memory.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use kreon_base::{Error, PAGE_BYTES, PageBytes, PageNo, Result};
use kreon_device::{Device, DeviceStats, Read, Write};
use parking_lot::Mutex;

use super::content::{Content, fill, mix};

const PAGE: u64 = PAGE_BYTES as u64;

pub struct MemoryDevice {
    len_bytes: u64,
    content: Content,
    /// 512 unless a test says otherwise.
    pub block_bytes: AtomicU32,
    written: Mutex<HashMap<u64, Box<PageBytes>>>,
    /// Pages that cannot be read, or written.
    pub bad_reads: Mutex<HashSet<u64>>,
    pub bad_writes: Mutex<HashSet<u64>>,
    /// One call in so many fails, 0 for none.
    pub read_failure_rate: AtomicU32,
    pub write_failure_rate: AtomicU32,
    /// So many of the next write calls fail.
    pub write_failures_left: AtomicU32,
    /// No write gets past while somebody holds this.
    pub write_gate: Mutex<()>,
    /// Every read ends half way.
    pub short_reads: AtomicBool,
    pub read_delay_us: AtomicU64,
    pub write_delay_us: AtomicU64,
    /// Pages that must not be written now.
    pub fenced: Mutex<HashSet<u64>>,
    writing: Mutex<HashSet<u64>>,
    /// What the mapping did that it must never do.
    pub violations: Mutex<Vec<String>>,
    pub reads: AtomicU64,
    pub read_calls: AtomicU64,
    pub writes: Mutex<Vec<(u64, usize)>>,
    pub write_calls: AtomicU64,
    calls: AtomicU64,
}

impl MemoryDevice {
    pub fn new(len_bytes: u64, content: Content) -> Self {
        Self {
            len_bytes,
            content,
            block_bytes: AtomicU32::new(512),
            written: Mutex::default(),
            bad_reads: Mutex::default(),
            bad_writes: Mutex::default(),
            read_failure_rate: AtomicU32::new(0),
            write_failure_rate: AtomicU32::new(0),
            write_failures_left: AtomicU32::new(0),
            write_gate: Mutex::new(()),
            short_reads: AtomicBool::new(false),
            read_delay_us: AtomicU64::new(0),
            write_delay_us: AtomicU64::new(0),
            fenced: Mutex::default(),
            writing: Mutex::default(),
            violations: Mutex::default(),
            reads: AtomicU64::new(0),
            read_calls: AtomicU64::new(0),
            writes: Mutex::default(),
            write_calls: AtomicU64::new(0),
            calls: AtomicU64::new(0),
        }
    }

    /// What the device holds of a page.
    pub fn page(&self, page: u64) -> Box<PageBytes> {
        match self.written.lock().get(&page) {
            Some(bytes) => bytes.clone(),
            None => match self.content {
                Content::Zero => Box::new([0; PAGE_BYTES]),
                Content::Numbered => fill(page, 0),
            },
        }
    }

    /// Changes a page past the mapping.
    pub fn put(&self, page: u64, bytes: Box<PageBytes>) {
        self.written.lock().insert(page, bytes);
    }

    /// Writes so far, as (first page, pages).
    pub fn writes(&self) -> Vec<(u64, usize)> {
        self.writes.lock().clone()
    }

    /// Reads so far: transfers, not pages.
    pub fn reads(&self) -> u64 {
        self.reads.load(SeqCst)
    }

    pub fn assert_no_violation(&self) {
        let violations = self.violations.lock();
        assert!(violations.is_empty(), "{violations:?}");
    }

    fn lucky(&self, rate: &AtomicU32) -> Result<()> {
        let rate = u64::from(rate.load(SeqCst));
        let call = self.calls.fetch_add(1, SeqCst);
        if rate > 0 && mix(call).is_multiple_of(rate) {
            return Err(io_error("by chance"));
        }
        Ok(())
    }

    fn read_one(&self, read: &mut Read<'_>) -> Result<()> {
        self.reads.fetch_add(1, SeqCst);
        self.lucky(&self.read_failure_rate)?;
        let block_bytes = self.block_bytes();
        assert!(
            read.offset.is_multiple_of(u64::from(block_bytes)),
            "a read within a block"
        );
        let mut at = read.offset;
        assert!(
            read.offset + read.len_bytes() <= self.len_bytes,
            "read past the end"
        );
        for buffer in &mut read.buffers {
            assert!(
                buffer.as_ptr().addr().is_multiple_of(block_bytes as usize)
                    && buffer.len().is_multiple_of(block_bytes as usize),
                "unaligned buffer"
            );
            let mut rest = &mut **buffer;
            while !rest.is_empty() {
                let (page, within) = (at / PAGE, (at % PAGE) as usize);
                let len = rest.len().min(PAGE_BYTES - within);
                let (part, later) = rest.split_at_mut(len);
                if self.bad_reads.lock().contains(&page) {
                    return Err(io_error("bad page"));
                }
                let bytes = &self.page(page)[within..within + len];
                if self.short_reads.load(SeqCst) {
                    part[..500].copy_from_slice(&bytes[..500]);
                    return Err(io_error("short read"));
                }
                part.copy_from_slice(bytes);
                (rest, at) = (later, at + len as u64);
            }
        }
        Ok(())
    }

    fn write_one(&self, write: &Write<'_>) -> Result<()> {
        let first = aligned(write.offset);
        assert!(
            write.offset + write.len_bytes() <= self.len_bytes,
            "write past the end"
        );
        assert!(
            write
                .buffers
                .iter()
                .all(|buffer| buffer.len() == PAGE_BYTES)
        );
        self.writes.lock().push((first, write.buffers.len()));
        for (page, buffer) in (first..).zip(&write.buffers) {
            if self.bad_writes.lock().contains(&page) {
                return Err(io_error("bad page"));
            }
            let bytes: &PageBytes = (*buffer).try_into().unwrap();
            self.written.lock().insert(page, Box::new(*bytes));
        }
        Ok(())
    }

    fn complain(&self, what: &str, page: u64) {
        self.violations.lock().push(format!("{what}: page {page}"));
    }

    fn begin_writing(&self, pages: &[u64]) {
        let (mut writing, fenced) = (self.writing.lock(), self.fenced.lock());
        for &page in pages {
            if !writing.insert(page) {
                self.complain("two writes in flight", page);
            }
            if fenced.contains(&page) {
                self.complain("write begun after discard", page);
            }
        }
    }

    fn end_writing(&self, pages: &[u64]) {
        let (mut writing, fenced) = (self.writing.lock(), self.fenced.lock());
        for page in pages {
            writing.remove(page);
            if fenced.contains(page) {
                self.complain("write ended after discard", *page);
            }
        }
    }
}

impl Device for MemoryDevice {
    fn block_bytes(&self) -> u32 {
        self.block_bytes.load(SeqCst)
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
        self.read_calls.fetch_add(1, SeqCst);
        pause(&self.read_delay_us);
        let mut first = Ok(());
        for read in reads {
            read.outcome = self.read_one(read);
            first = first.and(read.outcome.clone());
        }
        first
    }

    fn write(&self, writes: &[Write<'_>]) -> Result<()> {
        self.write_calls.fetch_add(1, SeqCst);
        let pages: Vec<u64> = writes
            .iter()
            .flat_map(|write| {
                let first = PageNo::containing(write.offset).0;
                first..first + write.len_bytes() / PAGE
            })
            .collect();
        self.begin_writing(&pages);
        pause(&self.write_delay_us);
        drop(self.write_gate.lock());
        let mut outcome = self.lucky(&self.write_failure_rate);
        let fail = |left: u32| left.checked_sub(1);
        if self
            .write_failures_left
            .fetch_update(SeqCst, SeqCst, fail)
            .is_ok()
        {
            outcome = Err(io_error("as ordered"));
        }
        for write in writes {
            outcome = outcome.and_then(|()| self.write_one(write));
        }
        self.end_writing(&pages);
        outcome
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn stats(&self) -> DeviceStats {
        DeviceStats::default()
    }
}

fn aligned(offset: u64) -> u64 {
    assert!(
        offset.is_multiple_of(PAGE),
        "the mapping writes whole pages"
    );
    offset / PAGE
}

fn pause(delay_us: &AtomicU64) {
    let delay_us = delay_us.load(SeqCst);
    if delay_us > 0 {
        std::thread::sleep(Duration::from_micros(delay_us));
    }
}

fn io_error(what: &str) -> Error {
    Error::io(what, io::Error::from_raw_os_error(5))
}
