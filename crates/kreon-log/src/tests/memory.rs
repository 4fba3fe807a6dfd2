//! What the log stands on, in memory.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use kreon_base::{Error, ErrorKind, LogId, Lsn, PAGE_BYTES, Result, SEGMENT_BYTES, SegmentId};
use kreon_device::{Device, DeviceStats, Read, Write};
use kreon_mapping::{FinalBytes, LentRecord};
use kreon_sync::Mutex;

use super::SEGMENTS;
use crate::home::{LogSpace, TakenSegment};
use crate::pages::{LogPages, ResidentPages, WrittenPages};
use crate::positions::Positions;
use kreon_volume::Purpose;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    Write {
        start: u64,
        end: u64,
    },
    /// Buffers of nothing but zeroes at the end of a write.
    Zeroes {
        start: u64,
        end: u64,
    },
    Flush,
}

/// A device in memory. Counts down to a failure of the n-th write, flush or read; can lose what was not
/// flushed.
pub(super) struct MemoryDevice {
    pub block_bytes: u32,
    pub bytes: Mutex<Vec<u8>>,
    /// What stood in the sectors that were written since the last flush, by offset.
    pub unflushed: Mutex<Vec<(u64, [u8; 512])>>,
    pub done: Mutex<Vec<Done>>,
    pub writes_left: Mutex<Option<usize>>,
    pub flushes_left: Mutex<Option<usize>>,
    pub reads_left: Mutex<Option<usize>>,
}

impl MemoryDevice {
    pub fn new(block_bytes: u32, segments: u32) -> Self {
        Self {
            block_bytes,
            bytes: Mutex::new(vec![0; (u64::from(segments) * SEGMENT_BYTES) as usize]),
            unflushed: Mutex::default(),
            done: Mutex::default(),
            writes_left: Mutex::default(),
            flushes_left: Mutex::default(),
            reads_left: Mutex::default(),
        }
    }

    /// Cuts the power: of the sectors written since the last flush, in their order, only those stay
    /// that `keeps`.
    pub fn crash(&self, mut keeps: impl FnMut(usize) -> bool) {
        let mut bytes = self.bytes.lock();
        for (index, (offset, old)) in self.unflushed.lock().drain(..).enumerate() {
            if !keeps(index) {
                bytes[offset as usize..offset as usize + 512].copy_from_slice(&old);
            }
        }
    }

    pub fn flushes(&self) -> usize {
        self.done
            .lock()
            .iter()
            .filter(|done| **done == Done::Flush)
            .count()
    }

    pub fn writes(&self) -> Vec<(u64, u64)> {
        let done = self.done.lock();
        let writes = done.iter().filter_map(|done| match done {
            Done::Write { start, end } => Some((*start, *end)),
            Done::Zeroes { .. } | Done::Flush => None,
        });
        writes.collect()
    }

    pub fn zeroes(&self) -> Vec<(u64, u64)> {
        let done = self.done.lock();
        let zeroes = done.iter().filter_map(|done| match done {
            Done::Zeroes { start, end } => Some((*start, *end)),
            Done::Write { .. } | Done::Flush => None,
        });
        zeroes.collect()
    }

    pub fn change(&self, at: u64, change: impl FnOnce(&mut u8)) {
        change(&mut self.bytes.lock()[at as usize]);
    }
}

fn count_down(left: &Mutex<Option<usize>>, what: &str) -> Result<()> {
    match left.lock().as_mut() {
        Some(0) => Err(Error::io(what, std::io::Error::from_raw_os_error(5))),
        Some(left) => {
            *left -= 1;
            Ok(())
        }
        None => Ok(()),
    }
}

impl Device for MemoryDevice {
    fn block_bytes(&self) -> u32 {
        self.block_bytes
    }
    fn len_bytes(&self) -> u64 {
        self.bytes.lock().len() as u64
    }
    fn len_bytes_max(&self) -> u64 {
        self.len_bytes()
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
    fn is_blank(&self, offset: u64, len_bytes: u64) -> bool {
        let range = offset as usize..(offset + len_bytes) as usize;
        self.bytes.lock()[range].iter().all(|byte| *byte == 0)
    }
    fn read(&self, reads: &mut [Read<'_>]) -> Result<()> {
        count_down(&self.reads_left, "read")?;
        let bytes = self.bytes.lock();
        for read in reads {
            let mut at = read.offset as usize;
            for buffer in &mut read.buffers {
                buffer.copy_from_slice(&bytes[at..at + buffer.len()]);
                at += buffer.len();
            }
        }
        Ok(())
    }
    fn write(&self, writes: &[Write<'_>]) -> Result<()> {
        count_down(&self.writes_left, "write")?;
        for write in writes {
            let mut at = write.offset as usize;
            let end = write.offset + write.len_bytes();
            let block = u64::from(self.block_bytes);
            assert!(write.offset.is_multiple_of(block) && end.is_multiple_of(block));
            let is_zero = |buffer: &&&[u8]| buffer.iter().all(|byte| *byte == 0);
            let behind = write.buffers.iter().rev().take_while(is_zero);
            let zeroes: usize = behind.map(|buffer| buffer.len()).sum();
            let (start, middle) = (write.offset, end - zeroes as u64);
            let mut done = self.done.lock();
            if start < middle {
                done.push(Done::Write { start, end: middle });
            }
            if middle < end {
                done.push(Done::Zeroes { start: middle, end });
            }
            drop(done);
            for buffer in &write.buffers {
                assert!(
                    buffer
                        .as_ptr()
                        .addr()
                        .is_multiple_of(self.block_bytes as usize)
                );
                for sector in buffer.as_chunks::<512>().0 {
                    let stored = &mut self.bytes.lock()[at..at + 512];
                    let old = stored.as_chunks().0[0];
                    self.unflushed.lock().push((at as u64, old));
                    stored.copy_from_slice(sector);
                    at += 512;
                }
            }
        }
        Ok(())
    }
    fn flush(&self) -> Result<()> {
        count_down(&self.flushes_left, "flush")?;
        self.done.lock().push(Done::Flush);
        self.unflushed.lock().clear();
        Ok(())
    }
    fn stats(&self) -> DeviceStats {
        DeviceStats::default()
    }
}

/// Gives segments in an order that is not that of their numbers; the last few only to deletions.
pub(super) struct Space {
    pub given: AtomicU32,
    pub limit: AtomicU32,
    pub asked: Mutex<Vec<(u64, Purpose)>>,
    /// Given out before new ones.
    pub returned: Mutex<Vec<SegmentId>>,
}

impl Space {
    pub fn new(limit: u32) -> Self {
        Self {
            given: AtomicU32::new(0),
            limit: AtomicU32::new(limit),
            asked: Mutex::default(),
            returned: Mutex::default(),
        }
    }
}

impl LogSpace for Space {
    fn allocate_segments(
        &self,
        _: LogId,
        first_sequence: u64,
        count: usize,
        purpose: Purpose,
    ) -> Result<Vec<TakenSegment>> {
        self.asked.lock().push((first_sequence, purpose));
        let reserve = if purpose == Purpose::Put { 0 } else { 2 };
        let given = self.given.load(Ordering::SeqCst);
        if given + count as u32 > self.limit.load(Ordering::SeqCst) + reserve {
            return Err(Error::new(ErrorKind::OutOfSpace, "no segment"));
        }
        if count == 1
            && let Some(returned) = self.returned.lock().pop()
        {
            return Ok(vec![TakenSegment {
                id: returned,
                was_written: true,
            }]);
        }
        self.given.store(given + count as u32, Ordering::SeqCst);
        // 17 and the number of usable segments have no common divisor: a permutation.
        let taken = |number| TakenSegment {
            id: SegmentId(1 + number * 17 % (SEGMENTS - 1)),
            was_written: false,
        };
        Ok((given..given + count as u32).map(taken).collect())
    }

    /// Little at a time, so that every test asks often.
    fn back(&self, _: SegmentId, range: (u32, u32), _: Purpose) -> Result<u32> {
        let more = range.1.saturating_add(4096).next_multiple_of(4096);
        Ok(more.min(SEGMENT_BYTES as u32))
    }
}

/// Pages that the log has said are written: offset and length of each run, in their order.
pub(super) struct Told {
    pub device: Arc<MemoryDevice>,
    pub runs: Mutex<Vec<(u64, usize)>>,
    /// Of each run, how far the log had landed when it was told.
    pub landed: Mutex<Vec<Lsn>>,
    /// There as soon as the log is open.
    pub positions: OnceLock<Arc<Positions>>,
}

impl WrittenPages for Told {
    fn written(&self, offset_bytes: u64, bytes: &[u8]) {
        let at = offset_bytes as usize;
        assert!(at.is_multiple_of(PAGE_BYTES) && bytes.len().is_multiple_of(PAGE_BYTES));
        let held = &self.device.bytes.lock()[at..at + bytes.len()];
        assert!(
            held == bytes,
            "the device has other bytes at {offset_bytes}"
        );
        self.runs.lock().push((offset_bytes, bytes.len()));
        let positions = self.positions.get();
        let landed = positions.map_or(Lsn(0), |positions| positions.written());
        self.landed.lock().push(landed);
    }
}

/// Pages that are kept forever once they were read, as the mapping may: a page that was read before it
/// was final shows.
pub(super) struct Pages {
    pub device: Arc<MemoryDevice>,
    pub kept: Mutex<HashMap<u64, Vec<u8>>>,
}

impl ResidentPages for Pages {
    fn with_resident<R>(
        &self,
        _: u64,
        _: usize,
        _: &mut Vec<u8>,
        _: impl FnOnce(LentRecord<'_>) -> R,
    ) -> Option<R> {
        None
    }
}

impl LogPages for Pages {
    fn with_bytes<R>(
        &self,
        bytes: FinalBytes,
        scratch: &mut Vec<u8>,
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<R> {
        // All that is said to be final may come along.
        let segment_start = bytes.offset_bytes - bytes.offset_bytes % SEGMENT_BYTES;
        for page in segment_start / PAGE_BYTES as u64..bytes.final_end_bytes / PAGE_BYTES as u64 {
            self.read_bytes(page * PAGE_BYTES as u64, &mut [0])?;
        }
        scratch.resize(bytes.len_bytes, 0);
        self.read_bytes(bytes.offset_bytes, scratch)?;
        Ok(f(scratch))
    }

    fn forget(&self, offset_bytes: u64, len: usize) {
        let first = offset_bytes / PAGE_BYTES as u64;
        let last = (offset_bytes + len.max(1) as u64 - 1) / PAGE_BYTES as u64;
        self.kept
            .lock()
            .retain(|page, _| !(first..=last).contains(page));
    }

    fn read_bytes(&self, offset_bytes: u64, into: &mut [u8]) -> Result<()> {
        let mut kept = self.kept.lock();
        let mut at = offset_bytes as usize;
        let mut rest = into;
        while !rest.is_empty() {
            let (page, within) = (at / PAGE_BYTES, at % PAGE_BYTES);
            let bytes = kept.entry(page as u64).or_insert_with(|| {
                self.device.bytes.lock()[page * PAGE_BYTES..(page + 1) * PAGE_BYTES].to_vec()
            });
            let count = rest.len().min(PAGE_BYTES - within);
            let (now, later) = std::mem::take(&mut rest).split_at_mut(count);
            now.copy_from_slice(&bytes[within..within + count]);
            (rest, at) = (later, at + count);
        }
        Ok(())
    }
}
