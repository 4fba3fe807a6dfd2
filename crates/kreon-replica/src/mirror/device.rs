//! The device that a primary's store is opened on.

use std::sync::Arc;
use std::time::Instant;

use kreon_base::{Result, planted};
use kreon_device::{BLOCK_BYTES_MAX, Device, DeviceStats, Read, ReadQueue, Write};
use kreon_format::SUPERBLOCK_PAGES;
use kreon_sync::{AtomicU64, Ordering};
use kreon_wire::StreamPacket;
use kreon_wire::limits::{BLOCK_BYTES, STREAM_DATA_BYTES_MAX};

use super::streams::Mirror;

/// A device whose writes, growth, allocations, discards and flushes go to all members of a group, too.
///
/// A flush returns when this device and all counted members have flushed. What the log writes goes to the device below
/// instead, as the tap sends it.
pub struct MirrorDevice {
    below: Arc<dyn Device>,
    mirror: Arc<Mirror>,
    /// Free bytes of the fullest member, divided by its groups.
    free_bytes: AtomicU64,
}

impl MirrorDevice {
    /// Over `below`, the file of the primary.
    pub fn new(below: Arc<dyn Device>, mirror: Arc<Mirror>) -> Self {
        Self {
            below,
            mirror,
            free_bytes: AtomicU64::new(u64::MAX),
        }
    }

    /// The device below: the one that takes the log.
    pub fn below(&self) -> &Arc<dyn Device> {
        &self.below
    }

    /// The streams.
    pub fn mirror(&self) -> &Arc<Mirror> {
        &self.mirror
    }

    /// The fullest member has so many free bytes for the group.
    pub fn set_free_bytes(&self, free_bytes: u64) {
        self.free_bytes.store(free_bytes, Ordering::Release);
    }

    fn ship_write(&self, write: &Write<'_>, gathered: &mut Vec<u8>) -> Result<()> {
        let mut offset = write.offset;
        for buffer in &write.buffers {
            let mut rest = *buffer;
            while !rest.is_empty() {
                let most = packet_bytes(offset, gathered.len());
                let (part, behind) = rest.split_at(rest.len().min(most));
                if gathered.is_empty() && part.len() == most {
                    self.ship_pages(offset, part)?;
                    offset += part.len() as u64;
                } else {
                    gathered.extend_from_slice(part);
                    if part.len() == most {
                        offset = self.ship_gathered(offset, gathered)?;
                    }
                }
                rest = behind;
            }
        }
        self.ship_gathered(offset, gathered).map(drop)
    }

    fn ship_gathered(&self, offset: u64, gathered: &mut Vec<u8>) -> Result<u64> {
        if !gathered.is_empty() {
            self.ship_pages(offset, gathered)?;
        }
        let end = offset + gathered.len() as u64;
        gathered.clear();
        Ok(end)
    }

    fn ship_pages(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let packet = StreamPacket::Pages { offset, bytes };
        self.mirror.ship(&packet).map(drop)
    }
}

/// How many more bytes a packet may hold that begins at `offset` and has `held` bytes: superblock slots have packets of
/// their own, because they can be withheld.
fn packet_bytes(offset: u64, held: usize) -> usize {
    const SLOTS_END: u64 = SUPERBLOCK_PAGES[3].offset_bytes() + BLOCK_BYTES;
    match offset < SLOTS_END {
        true => BLOCK_BYTES as usize - held,
        false => STREAM_DATA_BYTES_MAX as usize - held,
    }
}

impl Device for MirrorDevice {
    fn block_bytes(&self) -> u32 {
        // What any member may have.
        BLOCK_BYTES_MAX
    }

    fn len_bytes(&self) -> u64 {
        self.below.len_bytes()
    }

    fn len_bytes_max(&self) -> u64 {
        self.below.len_bytes_max()
    }

    fn free_bytes(&self) -> Option<u64> {
        let elsewhere = self.free_bytes.load(Ordering::Acquire);
        match self.below.free_bytes() {
            Some(here) => Some(here.min(elsewhere)),
            None => (elsewhere != u64::MAX).then_some(elsewhere),
        }
    }

    fn grow(&self, len_bytes: u64) -> Result<()> {
        let _call = self.mirror.begin_call()?;
        self.below.grow(len_bytes)?;
        self.mirror
            .ship(&StreamPacket::Grow { len_bytes })
            .map(drop)
    }

    fn allocate(&self, offset: u64, len_bytes: u64) -> Result<()> {
        let _call = self.mirror.begin_call()?;
        self.below.allocate(offset, len_bytes)?;
        if len_bytes == 0 {
            return Ok(());
        }
        let packet = StreamPacket::Allocate { offset, len_bytes };
        let shipped = self.mirror.ship(&packet)?;
        self.mirror.await_space(&shipped)
    }

    fn discard(&self, offset: u64, len_bytes: u64) -> Result<()> {
        let _call = self.mirror.begin_call()?;
        self.below.discard(offset, len_bytes)?;
        if len_bytes == 0 {
            return Ok(());
        }
        let packet = StreamPacket::Discard { offset, len_bytes };
        self.mirror.ship(&packet).map(drop)
    }

    fn is_blank(&self, offset: u64, len_bytes: u64) -> bool {
        self.below.is_blank(offset, len_bytes)
    }

    fn read(&self, reads: &mut [Read<'_>]) -> Result<()> {
        self.below.read(reads)
    }

    fn write(&self, writes: &[Write<'_>]) -> Result<()> {
        let _call = self.mirror.begin_call()?;
        let mut gathered = Vec::new();
        for write in writes {
            self.ship_write(write, &mut gathered)?;
        }
        self.below.write(writes)
    }

    fn flush(&self) -> Result<()> {
        planted!(TapBeforeFirstCheckpoint => if !self.mirror.is_log_begun() {
            return self.below.flush();
        });
        let start = Instant::now();
        // The members flush beside this device.
        let number = self.mirror.begin_barrier()?;
        self.below.flush()?;
        planted!(BarrierNotAwaited => return Ok(()));
        let here = start.elapsed();
        self.mirror.await_flush(number)?;
        let total = start.elapsed();
        self.mirror.barriers.add(total, total.saturating_sub(here));
        Ok(())
    }

    fn stats(&self) -> DeviceStats {
        self.below.stats()
    }

    fn read_queue(&self) -> Option<Box<dyn ReadQueue>> {
        self.below.read_queue()
    }

    fn unlock(&self) -> Result<()> {
        self.below.unlock()
    }
}
