//! Extents of 1 MiB, handed to partitions.

use std::collections::BTreeSet;
use std::sync::Arc;

use kreon_base::{Error, ErrorKind, Result, planted};
use kreon_device::{AlignedBuf, Device, Write};
use parking_lot::Mutex;

use super::flush_clock::FlushClock;
use super::superblocks::Superblocks;
use crate::format::{ClassNo, EXTENT_BYTES, ExtentHeader, ExtentNo};

/// The end of the extents moves on by an eighth, but by no less and no more than so many. Recovery reads what was not used
/// yet; each step costs a superblock, two flushes, and a write of a block for each extent that is not known to be blank.
const STEP_MIN: u32 = 64;
const STEP_MAX: u32 = 1024;

/// Where partitions get extents from.
pub trait ExtentSource: Send + Sync {
    /// An extent for slots of `class`. It reads as zeroes but for its header, which is written and durable with the next
    /// flush. `OutOfSpace` if there is none.
    fn take(&self, partition: u16, class: ClassNo) -> Result<ExtentNo>;

    /// Takes back extents of which no slot is in use, durably: one flush for all.
    fn give(&self, extents: &[ExtentNo]) -> Result<()>;
}

/// What a recovery found on a device.
#[derive(Clone, Debug, Default)]
pub struct FoundExtents {
    /// Extents before the end without a header.
    pub free: BTreeSet<ExtentNo>,
    /// None has a header from here on.
    pub end: u32,
    /// The largest number of a header.
    pub sequence: u64,
}

/// The extents of a device: those that were given back, then those never used.
///
/// What is on the device behind the end that the superblock tells means nothing, whatever it is: see
/// `reach`.
pub struct Extents {
    device: Arc<dyn Device>,
    superblocks: Arc<Superblocks>,
    /// Held while the end moves on.
    reaching: Mutex<()>,
    /// Knows of failures: what they may have lost cannot be made durable any more.
    clock: Arc<FlushClock>,
    /// Nothing awaits flushes. Then extents are written as a whole ahead: the first write to a block of a file lasts only when
    /// the file system has noted it, which takes a flush.
    is_lossless: bool,
    state: Mutex<State>,
}

struct State {
    /// Without a header; what they hold otherwise is unknown.
    free: BTreeSet<ExtentNo>,
    /// All extents from here on were never used.
    end: u32,
    sequence: u64,
    /// Extents by which the end that the superblock tells moves on at least.
    step_min: u32,
}

impl State {
    /// An extent nobody has, whether it was never used, and the number of its header.
    fn next(&mut self) -> (ExtentNo, bool, u64) {
        self.sequence += 1;
        match self.free.pop_first() {
            Some(free) => (free, false, self.sequence),
            None => {
                self.end += 1;
                (ExtentNo(self.end - 1), true, self.sequence)
            }
        }
    }
}

impl Extents {
    /// The extents of `device`, as they were found. `clock` is told when a write or flush fails.
    pub fn new(
        device: Arc<dyn Device>,
        superblocks: Arc<Superblocks>,
        found: FoundExtents,
        (clock, is_lossless): (Arc<FlushClock>, bool),
    ) -> Self {
        let state = State {
            free: found.free,
            end: found.end.max(1),
            sequence: found.sequence,
            step_min: STEP_MIN,
        };
        Self {
            device,
            superblocks,
            reaching: Mutex::new(()),
            clock,
            is_lossless,
            state: Mutex::new(state),
        }
    }

    /// Sets by how many extents the end that the superblock tells moves on at least: few in tests.
    pub fn set_step_min(&self, extents: u32) {
        self.state.lock().step_min = extents.max(1);
    }

    /// None has a header from this extent on; and the largest number of a header.
    pub fn end(&self) -> (u32, u64) {
        let state = self.state.lock();
        (state.end, state.sequence)
    }

    /// Extents in use and given back.
    pub fn counts(&self) -> (u32, u32) {
        let state = self.state.lock();
        let free = state.free.len() as u32;
        (state.end - 1 - free, free)
    }

    /// Makes an extent read as zeroes. What it held could otherwise be taken for items after a power cut, so this has to be
    /// durable before the extent gets a header. Returns whether zeroes were written.
    fn clear(&self, extent: ExtentNo) -> Result<bool> {
        let offset = extent.offset();
        if !self.device.is_blank(offset, EXTENT_BYTES as u64) {
            self.device.discard(offset, EXTENT_BYTES as u64)?;
        }
        let is_written = !self.device.is_blank(offset, EXTENT_BYTES as u64);
        if is_written {
            let zeroes = AlignedBuf::new(EXTENT_BYTES);
            self.device.write_at(offset, &zeroes)?;
        }
        // Even if it was blank: the discard that made it so may not be durable.
        self.flush()?;
        Ok(is_written)
    }

    fn flush(&self) -> Result<()> {
        self.clock.beside(|| self.device.flush())
    }

    /// Makes an extent of the device ready for a header. `is_new`: it was never used. Returns whether it has blocks that were written.
    fn prepare(&self, extent: ExtentNo, is_new: bool) -> Result<bool> {
        let (offset, len_bytes) = (extent.offset(), EXTENT_BYTES as u64);
        let end = offset + len_bytes;
        if end > self.device.len_bytes_max() {
            let all = self.device.len_bytes_max();
            let text = format!("the volume is full: all {all} bytes are in use");
            return Err(Error::new(ErrorKind::OutOfSpace, text));
        }
        // What a device grows by reads as zeroes.
        let is_beyond = offset >= self.device.len_bytes();
        if end > self.device.len_bytes() {
            self.device.grow(end)?;
        }
        self.reach(extent)?;
        let is_known_blank = is_beyond || self.device.is_blank(offset, len_bytes);
        let is_written = match !is_new || self.is_lossless || !is_known_blank {
            true => self.clear(extent)?,
            false => false,
        };
        self.device.allocate(offset, len_bytes)?;
        Ok(is_written)
    }

    /// Has recovery read `extent`, whatever becomes of the power from now on, by a superblock with a later end. Before that
    /// is written, no extent up to the later end has anything at the place of its header, durably: recovery would take what
    /// else a used device has there for damage.
    fn reach(&self, extent: ExtentNo) -> Result<()> {
        if extent.0 < self.superblocks.extents_end() {
            return Ok(());
        }
        let _one_at_a_time = self.reaching.lock();
        let end = self.superblocks.extents_end();
        if extent.0 < end {
            return Ok(());
        }
        let step_min = self.state.lock().step_min;
        let step = (end / 8).clamp(step_min, STEP_MAX.max(step_min));
        let all = self.device.len_bytes_max() / EXTENT_BYTES as u64;
        let all = u32::try_from(all).unwrap_or(u32::MAX);
        let later = end.saturating_add(step).min(all).max(extent.0 + 1);
        planted!(ExtentBehindTheEnd => let later = end.max(extent.0));
        self.clear_headers(end, later)?;
        self.superblocks
            .write(|superblock| superblock.extents_end = later)
    }

    /// Makes the headers of extents zeroes, durably, as far as they are not.
    fn clear_headers(&self, first: u32, end: u32) -> Result<()> {
        let zeroes = AlignedBuf::new(self.device.block_bytes() as usize);
        let block_bytes = zeroes.len() as u64;
        let len_bytes = self.device.len_bytes();
        let offsets = (first..end).map(|extent| ExtentNo(extent).offset());
        let present = offsets.take_while(|offset| offset + block_bytes <= len_bytes);
        let present: Vec<u64> = present.collect();
        if present.is_empty() {
            return Ok(());
        }
        let writes: Vec<Write<'_>> = present
            .into_iter()
            .filter(|&offset| !self.device.is_blank(offset, block_bytes))
            .map(|offset| Write::new(offset, &zeroes))
            .collect();
        if !writes.is_empty() {
            self.device.write(&writes)?;
        }
        // Even if all were blank: the discard that made them so, as that of an image, may not be durable.
        self.flush()
    }

    /// Writes a header; the rest of the extent with it, as zeroes, unless its blocks were written before. Of blocks that are only
    /// reserved, a file system lets one write in at a time that is smaller than a block of its own: items would come one after the other.
    fn label(&self, header: &ExtentHeader, is_written: bool) -> Result<()> {
        let len_bytes = match is_written {
            true => self.device.block_bytes() as usize,
            false => EXTENT_BYTES,
        };
        let mut bytes = AlignedBuf::new(len_bytes);
        let sector = header.encode();
        bytes[..sector.len()].copy_from_slice(&sector);
        self.device.write_at(header.extent.offset(), &bytes)
    }
}

impl ExtentSource for Extents {
    fn take(&self, partition: u16, class: ClassNo) -> Result<ExtentNo> {
        self.watched(self.taken(partition, class))
    }

    fn give(&self, extents: &[ExtentNo]) -> Result<()> {
        self.watched(self.given(extents))
    }
}

impl Extents {
    /// The lock is not held over I/O: an extent that comes to nothing goes to those that were given back.
    fn taken(&self, partition: u16, class: ClassNo) -> Result<ExtentNo> {
        let (extent, is_new, sequence) = self.state.lock().next();
        let header = ExtentHeader {
            store: self.superblocks.store(),
            extent,
            partition,
            class,
            sequence,
        };
        let outcome = self
            .prepare(extent, is_new)
            .and_then(|is_written| self.label(&header, is_written));
        match outcome {
            Ok(()) => Ok(extent),
            Err(error) => {
                self.state.lock().free.insert(extent);
                Err(error)
            }
        }
    }

    fn given(&self, extents: &[ExtentNo]) -> Result<()> {
        // The headers go durably before anything else, so that no part of an extent is taken for items later.
        let zeroes = AlignedBuf::new(self.device.block_bytes() as usize);
        for extent in extents {
            self.device.write_at(extent.offset(), &zeroes)?;
        }
        self.flush()?;
        for &extent in extents {
            let len_bytes = EXTENT_BYTES as u64;
            self.device.discard(extent.offset(), len_bytes)?;
            self.state.lock().free.insert(extent);
        }
        Ok(())
    }

    /// A full device has lost nothing; after another failure nobody knows.
    fn watched<T>(&self, outcome: Result<T>) -> Result<T> {
        if let Err(error) = &outcome
            && error.kind() != ErrorKind::OutOfSpace
        {
            self.clock.fail();
        }
        outcome
    }
}
