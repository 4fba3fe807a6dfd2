//! A device in memory whose background reads end when the test says so.

use std::io::IoSliceMut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kreon_base::{Error, PAGE_BYTES, Result};
use kreon_device::{Device, DeviceStats, Ended, Read, ReadQueue, Write};

use super::content::fill;

const PAGE: u64 = PAGE_BYTES as u64;
pub const VOLUME_BYTES: u64 = 64 << 20;

/// A read in flight: its tag, where it starts, its buffers.
pub type InFlight = (u64, u64, Vec<(*mut u8, usize)>);

#[derive(Default)]
pub struct State {
    pub in_flight: Mutex<Vec<InFlight>>,
    /// How many reads may end.
    pub released: AtomicUsize,
    /// Reads end half way.
    pub is_short: AtomicBool,
    pub reads: AtomicUsize,
    pub blocking_reads: AtomicUsize,
    pub bad: Mutex<Option<u64>>,
    pub depth: AtomicUsize,
}

// SAFETY: the pointers are to memory that the pusher leaves to this queue until it has reaped the read.
unsafe impl Send for State {}
// SAFETY: as above; they are used under the lock.
unsafe impl Sync for State {}

pub struct Slow(pub Arc<State>);

struct Queue(Arc<State>);

/// The bytes that the device holds.
pub fn held(offset: u64, len: usize) -> Vec<u8> {
    let pages = offset / PAGE..(offset + len as u64).div_ceil(PAGE);
    let bytes = pages.flat_map(|page| fill(page, 0).to_vec());
    bytes.skip((offset % PAGE) as usize).take(len).collect()
}

impl ReadQueue for Queue {
    unsafe fn push(&self, tag: u64, offset: u64, buffers: &mut [IoSliceMut<'_>]) -> bool {
        let mut in_flight = self.0.in_flight.lock().unwrap();
        if in_flight.len() >= self.depth() {
            return false;
        }
        let buffers = buffers.iter_mut().map(|b| (b.as_mut_ptr(), b.len()));
        in_flight.push((tag, offset, buffers.collect()));
        self.0.reads.fetch_add(1, SeqCst);
        true
    }

    fn waiting(&self) -> usize {
        0
    }

    fn in_flight(&self) -> usize {
        self.0.in_flight.lock().unwrap().len()
    }

    fn depth(&self) -> usize {
        self.0.depth.load(SeqCst)
    }

    fn submit(&self) {}

    fn wait(&self, _: usize, _: Duration) {
        std::thread::sleep(Duration::from_micros(100));
    }

    fn reap(&self, ended: &mut Vec<Ended>) {
        let mut in_flight = self.0.in_flight.lock().unwrap();
        let may_end = |left: usize| left.checked_sub(1);
        while !in_flight.is_empty()
            && self
                .0
                .released
                .fetch_update(SeqCst, SeqCst, may_end)
                .is_ok()
        {
            let (tag, offset, buffers) = in_flight.remove(0);
            let mut moved_bytes = 0;
            for (start, len) in buffers {
                let bytes = held(offset + moved_bytes as u64, len);
                // SAFETY: the pusher promises that the memory stays until this returns the tag.
                unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), start, len) };
                moved_bytes += len;
            }
            if self.0.is_short.load(SeqCst) {
                moved_bytes /= 2;
            }
            ended.push(Ended { tag, moved_bytes });
        }
    }

    fn is_broken(&self) -> bool {
        false
    }
}

impl Device for Slow {
    fn block_bytes(&self) -> u32 {
        512
    }
    fn len_bytes(&self) -> u64 {
        VOLUME_BYTES
    }
    fn len_bytes_max(&self) -> u64 {
        VOLUME_BYTES
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
        self.0.blocking_reads.fetch_add(1, SeqCst);
        for read in reads {
            for (page, buffer) in (read.offset / PAGE..).zip(&mut read.buffers) {
                if *self.0.bad.lock().unwrap() == Some(page) {
                    return Err(Error::io("bad page", std::io::ErrorKind::Other.into()));
                }
                buffer.copy_from_slice(&*fill(page, 0));
            }
        }
        Ok(())
    }
    fn write(&self, _: &[Write<'_>]) -> Result<()> {
        Ok(())
    }
    fn flush(&self) -> Result<()> {
        Ok(())
    }
    fn stats(&self) -> DeviceStats {
        DeviceStats::default()
    }
    fn read_queue(&self) -> Option<Box<dyn ReadQueue>> {
        Some(Box::new(Queue(Arc::clone(&self.0))))
    }
}
