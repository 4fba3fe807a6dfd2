//! Bare transfers of a file beside that of the store, at random places.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use kreon_device::{
    AlignedBuf, Device, FileDevice, FileOptions, TransferQueue, Transferred, Write,
};

use super::plan::Step;
use crate::keys::hash;

/// Of a flush; other transfers have the number of their place.
const FLUSH: u64 = u64::MAX;

/// One of so many transfers in flight has ended before the thread goes on, or this time has passed.
const GATHERED_PART: usize = 4;
const GATHERED_MAX: Duration = Duration::from_micros(100);

/// Written at a time when the file is made.
const CHUNK_BYTES: usize = 1 << 20;

/// A file of its own, as long as the store's: its writes must not meet the store's items.
pub struct RawFile {
    device: Arc<FileDevice>,
}

impl RawFile {
    /// Makes the file and writes all of it, so that no measured write has to allocate.
    ///
    /// # Errors
    /// Of the file system.
    pub fn new(path: &Path, len_bytes: u64) -> anyhow::Result<Self> {
        let file = FileOptions {
            create: true,
            ..FileOptions::default()
        };
        let device = FileDevice::open(path, &file)?.0;
        let chunks = len_bytes.div_ceil(CHUNK_BYTES as u64).max(1);
        device.grow(chunks * CHUNK_BYTES as u64)?;
        let mut chunk = AlignedBuf::new(CHUNK_BYTES);
        crate::keys::fill(0, &mut chunk);
        for number in 0..chunks {
            device.write(&[Write::new(number * CHUNK_BYTES as u64, &chunk)])?;
        }
        device.flush()?;
        Ok(Self {
            device: Arc::new(device),
        })
    }

    /// Whether its transfers bypass the page cache.
    pub fn is_direct(&self) -> bool {
        self.device.is_direct()
    }

    /// Unit of places and sizes.
    pub fn block_bytes(&self) -> usize {
        self.device.block_bytes() as usize
    }

    /// A queue for `depth` transfers in flight, at places of `seed`.
    pub fn queue(&self, depth: usize, seed: u64) -> Raw {
        Raw {
            // One more: a flush has its own place, as in the store.
            queue: Arc::clone(&self.device).transfer_queue(depth + 1),
            len_bytes: self.device.len_bytes(),
            block_bytes: self.device.block_bytes().into(),
            seats: (0..depth).map(|_| Seat::default()).collect(),
            free: (0..depth).rev().collect(),
            draws: seed << 32,
            ended: Vec::new(),
        }
    }
}

/// Transfers at a depth.
pub struct Raw {
    queue: Box<dyn TransferQueue>,
    len_bytes: u64,
    block_bytes: u64,
    seats: Vec<Seat>,
    /// Numbers of the seats of which nothing is in flight.
    free: Vec<usize>,
    draws: u64,
    ended: Vec<Transferred>,
}

/// Place of a transfer in flight.
#[derive(Default)]
struct Seat {
    /// Kept from one transfer to the next.
    buffer: Option<AlignedBuf>,
    started: Option<Instant>,
}

impl Raw {
    /// Carries out `steps` in their order, the next as soon as there is room, and notes how long each took, in ns. One
    /// flush is in flight at a time, as in the store; the last one begins when all transfers have ended.
    ///
    /// # Errors
    /// Of the device.
    pub fn run(&mut self, steps: &[Step], latencies: &mut Histogram<u64>) -> anyhow::Result<()> {
        let mut steps = steps.iter();
        let (mut flushes_due, mut flush_started) = (0, None);
        loop {
            while !self.free.is_empty()
                && let Some(step) = steps.next()
            {
                match *step {
                    Step::Read(bytes) => self.begin(bytes, true),
                    Step::Write(bytes) => self.begin(bytes, false),
                    Step::Flush => flushes_due += 1,
                }
            }
            let is_idle = self.free.len() == self.seats.len();
            let is_last = flushes_due == 1 && steps.len() == 0;
            if flushes_due > 0 && flush_started.is_none() && (is_idle || !is_last) {
                flushes_due -= 1;
                flush_started = Some(Instant::now());
                self.queue.flush(FLUSH);
            }
            if is_idle && flush_started.is_none() {
                return Ok(());
            }
            // Several at a time, as the store does: woken for each, the thread would spend more, not less.
            let several = self.queue.in_flight() / GATHERED_PART;
            match several {
                0 | 1 => self.queue.wait(Duration::from_secs(1)),
                _ => self.queue.wait_for(several, GATHERED_MAX),
            }
            self.queue.reap(&mut self.ended);
            let now = Instant::now();
            let mut ended = std::mem::take(&mut self.ended);
            for one in ended.drain(..) {
                one.outcome?;
                let started = match one.tag {
                    FLUSH => flush_started.take(),
                    seat => self.take(seat as usize, one.buffer),
                };
                let time = started.map_or(Duration::ZERO, |started| now - started);
                latencies.saturating_record((time.as_nanos() as u64).max(1));
            }
            self.ended = ended;
        }
    }

    /// Pushes a transfer at a random place. There must be a free seat.
    fn begin(&mut self, len_bytes: usize, is_read: bool) {
        let Some(number) = self.free.pop() else {
            return;
        };
        let offset = self.place(len_bytes as u64);
        let Some(seat) = self.seats.get_mut(number) else {
            return;
        };
        let fits = |buffer: &AlignedBuf| buffer.len() >= len_bytes;
        let buffer = seat.buffer.take().filter(fits);
        let buffer = buffer.unwrap_or_else(|| AlignedBuf::new(len_bytes));
        seat.started = Some(Instant::now());
        match is_read {
            true => self.queue.read(number as u64, offset, buffer, len_bytes),
            false => self.queue.write(number as u64, offset, buffer, len_bytes),
        }
    }

    /// A transfer has ended: when it began.
    fn take(&mut self, number: usize, buffer: Option<AlignedBuf>) -> Option<Instant> {
        let seat = self.seats.get_mut(number)?;
        seat.buffer = buffer;
        self.free.push(number);
        seat.started.take()
    }

    fn place(&mut self, len_bytes: u64) -> u64 {
        self.draws += 1;
        let places = (self.len_bytes.saturating_sub(len_bytes)) / self.block_bytes + 1;
        hash(self.draws) % places * self.block_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ycsb::client::latencies;

    #[test]
    fn all_steps_are_carried_out() {
        let dir = tempfile::tempdir().unwrap();
        let file = RawFile::new(&dir.path().join("raw"), 1 << 20).unwrap();
        let before = file.device.stats();
        let block = file.block_bytes();
        let some = [Step::Read(block), Step::Write(2 * block), Step::Flush];
        let steps = some.repeat(50);
        let mut times = latencies().unwrap();
        file.queue(4, 1).run(&steps, &mut times).unwrap();
        let after = file.device.stats();
        assert_eq!(after.reads.count - before.reads.count, 50);
        assert_eq!(after.writes.count - before.writes.count, 50);
        let bytes = after.writes.bytes - before.writes.bytes;
        assert_eq!(bytes, 100 * block as u64);
        assert_eq!(after.flushes - before.flushes, 50);
        assert_eq!(times.len(), 150);
    }
}
