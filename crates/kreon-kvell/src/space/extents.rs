//! Extents of 1 MiB, handed to partitions.

use std::collections::BTreeSet;
use std::sync::Arc;

use kreon_base::{Error, ErrorKind, Result};
use kreon_device::{AlignedBuf, Device};
use parking_lot::Mutex;

use super::flush_clock::FlushClock;
use crate::format::{ClassNo, EXTENT_BYTES, ExtentHeader, ExtentNo, ItemSeal};

/// Where partitions get extents from.
pub trait ExtentSource: Send + Sync {
    /// An extent for slots of `class`. It reads as zeroes but for its header, which is written and durable with the next
    /// flush. `OutOfSpace` if there is none.
    fn take(&self, partition: u16, class: ClassNo) -> Result<ExtentNo>;

    /// Takes back extents of which no slot is in use, durably: one flush for all.
    fn give(&self, extents: &[ExtentNo]) -> Result<()>;
}

/// The extents of a device: those that were given back, then those behind the end.
pub struct Extents {
    device: Arc<dyn Device>,
    seal: ItemSeal,
    /// Knows of failures: what they may have lost cannot be made durable any more.
    clock: Arc<FlushClock>,
    state: Mutex<State>,
}

struct State {
    /// Without a header; what they hold otherwise is unknown.
    free: BTreeSet<ExtentNo>,
    /// All extents from here on were never used.
    end: u32,
    sequence: u64,
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
    /// The extents of `device`, of which those before `end` are in use but for those in `free`. Headers get sequence
    /// numbers over `sequence`. `clock` is told when a write or flush fails.
    pub fn new(
        device: Arc<dyn Device>,
        seal: ItemSeal,
        free: impl IntoIterator<Item = ExtentNo>,
        end: u32,
        sequence: u64,
        clock: Arc<FlushClock>,
    ) -> Self {
        let state = State {
            free: free.into_iter().collect(),
            end: end.max(1),
            sequence,
        };
        Self {
            device,
            seal,
            clock,
            state: Mutex::new(state),
        }
    }

    /// Extents in use and given back.
    pub fn counts(&self) -> (u32, u32) {
        let state = self.state.lock();
        let free = state.free.len() as u32;
        (state.end - 1 - free, free)
    }

    /// Makes an extent read as zeroes. What it held could otherwise be taken for items after a power cut, so this has to be
    /// durable before the extent gets a header.
    fn clear(&self, extent: ExtentNo) -> Result<()> {
        let offset = extent.offset();
        if !self.device.is_blank(offset, EXTENT_BYTES as u64) {
            self.device.discard(offset, EXTENT_BYTES as u64)?;
        }
        if !self.device.is_blank(offset, EXTENT_BYTES as u64) {
            let zeroes = AlignedBuf::new(EXTENT_BYTES);
            self.device.write_at(offset, &zeroes)?;
        }
        // Even if it was blank: the discard that made it so may not be durable.
        self.flush()
    }

    fn flush(&self) -> Result<()> {
        self.clock.beside(|| self.device.flush())
    }

    /// Makes an extent of the device ready for a header. `is_new`: it was never used.
    fn prepare(&self, extent: ExtentNo, is_new: bool) -> Result<()> {
        let (offset, len_bytes) = (extent.offset(), EXTENT_BYTES as u64);
        let end = offset + len_bytes;
        if end > self.device.len_bytes_max() {
            let all = self.device.len_bytes_max();
            let text = format!("the volume is full: all {all} bytes are in use");
            return Err(Error::new(ErrorKind::OutOfSpace, text));
        }
        if end > self.device.len_bytes() {
            self.device.grow(end)?;
        }
        if !is_new || !self.device.is_blank(offset, len_bytes) {
            self.clear(extent)?;
        }
        self.device.allocate(offset, len_bytes)
    }

    fn label(&self, header: &ExtentHeader) -> Result<()> {
        let mut block = AlignedBuf::new(self.device.block_bytes() as usize);
        let sector = header.encode();
        block[..sector.len()].copy_from_slice(&sector);
        self.device.write_at(header.extent.offset(), &block)
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
            store: self.seal.store,
            extent,
            partition,
            class,
            sequence,
        };
        let outcome = self
            .prepare(extent, is_new)
            .and_then(|()| self.label(&header));
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
