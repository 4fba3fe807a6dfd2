//! The superblocks of an open store: the only place where one is written from.
//!
//! A superblock with new marks comes with a flush that a worker carries out; all others are written by calls that wait. So
//! one of the four slots has the newest durable superblock, and one may have a write in flight; the others are free for a
//! call, which takes both: what an older superblock says would be wrong after it (the end of the extents, an image), and
//! damage to one slot must not bring that back.

use std::sync::Arc;

use kreon_base::{ErrorKind, PAGE_BYTES, Result};
use kreon_device::{AlignedBuf, Device, Write};
use kreon_format::StoreId;
use parking_lot::Mutex;

use super::flush_clock::FlushClock;
use crate::format::{SUPERBLOCK_SLOTS, State, Superblock, Timestamp};

/// Slots that a change of the superblock goes to.
const COPIES: usize = 2;

/// Writes the superblocks of a store. Costs about 4 KiB of memory.
pub struct Superblocks {
    device: Arc<dyn Device>,
    /// Is told when a write or flush fails.
    clock: Arc<FlushClock>,
    /// Held over the I/O of calls, so that one at a time writes.
    writing: Mutex<()>,
    known: Mutex<Known>,
}

struct Known {
    /// The newest, durable or not: the next one is made from it.
    newest: Superblock,
    /// Sequence of the newest durable one. Its slot is not written to.
    durable: u64,
    /// Where the extents end, durably.
    extents_end: u32,
    /// Sequence of the one in a worker's hands.
    in_flight: Option<u64>,
}

/// A superblock for a worker to write.
pub struct SuperblockPage {
    /// Names it towards [`Superblocks::is_durable`].
    pub sequence: u64,
    /// Byte offset on the device.
    pub offset: u64,
    pub page: AlignedBuf,
}

impl Known {
    /// Makes `newest` the next superblock, which goes to a slot that may be written to.
    fn advance(&mut self) {
        let kept = [Some(self.durable), self.in_flight].map(|it| it.map(slot_of));
        // Two of the four slots are left at least, so two steps in a row lead to two of them.
        loop {
            self.newest.sequence += 1;
            if !kept.contains(&Some(slot_of(self.newest.sequence))) {
                return;
            }
        }
    }
}

fn slot_of(sequence: u64) -> u64 {
    sequence % SUPERBLOCK_SLOTS as u64
}

impl Superblocks {
    /// Those that follow `superblock`, which is durable.
    pub fn new(device: Arc<dyn Device>, clock: Arc<FlushClock>, superblock: Superblock) -> Self {
        Self {
            device,
            clock,
            writing: Mutex::new(()),
            known: Mutex::new(Known {
                durable: superblock.sequence,
                extents_end: superblock.extents_end,
                newest: superblock,
                in_flight: None,
            }),
        }
    }

    /// The store whose superblocks these are.
    pub fn store(&self) -> StoreId {
        self.known.lock().newest.store
    }

    /// The newest one, durable or not.
    pub fn newest(&self) -> Superblock {
        self.known.lock().newest.clone()
    }

    /// Extents that recovery reads whatever becomes of what is in flight: those before this one.
    pub fn extents_end(&self) -> u32 {
        self.known.lock().extents_end
    }

    /// Whether `marks` say more than the newest superblock.
    pub fn would_change(&self, marks: &[Timestamp]) -> bool {
        let known = self.known.lock();
        let news = marks.iter().zip(&known.newest.durable);
        news.into_iter().any(|(mark, old)| mark > old)
    }

    /// The next superblock, with these marks, for a worker to write and then flush. `None` while one is in flight.
    pub fn begin(&self, marks: &[Timestamp]) -> Option<SuperblockPage> {
        let mut known = self.known.lock();
        if known.in_flight.is_some() {
            return None;
        }
        known.advance();
        // A partition that was broken off tells no mark.
        known.newest.raise(marks);
        known.in_flight = Some(known.newest.sequence);
        Some(SuperblockPage {
            sequence: known.newest.sequence,
            offset: known.newest.offset(),
            page: page(&known.newest),
        })
    }

    /// A flush has ended successfully that a worker began when the superblock that it was given had been written. Not to be
    /// called after a failure: its slot may be written to then at any time.
    pub fn is_durable(&self, sequence: u64) {
        let mut known = self.known.lock();
        if known.in_flight == Some(sequence) {
            known.in_flight = None;
            known.durable = known.durable.max(sequence);
        }
    }

    /// Changes the superblock, durably, in two slots: a write and a flush. Marks may only rise.
    ///
    /// A failure leaves what was durable. `OutOfSpace` loses nothing; after another one the clock says that the device has
    /// failed.
    pub fn write(&self, change: impl FnOnce(&mut Superblock)) -> Result<()> {
        let _one_at_a_time = self.writing.lock();
        let mut change = Some(change);
        let copies: [Superblock; COPIES] = {
            let mut known = self.known.lock();
            std::array::from_fn(|_| {
                known.advance();
                if let Some(change) = change.take() {
                    change(&mut known.newest);
                }
                known.newest.clone()
            })
        };
        let pages = copies.each_ref().map(page);
        let writes = copies.each_ref().map(Superblock::offset);
        let writes = writes.into_iter().zip(&pages);
        let writes: Vec<Write<'_>> = writes.map(|(at, page)| Write::new(at, page)).collect();
        let written = self.device.write(&writes).inspect_err(|error| {
            if error.kind() != ErrorKind::OutOfSpace {
                self.clock.fail();
            }
        });
        written.and_then(|()| self.flush())?;
        let [_, last] = copies;
        let mut known = self.known.lock();
        known.durable = known.durable.max(last.sequence);
        known.extents_end = last.extents_end;
        Ok(())
    }

    /// Flushes the device beside the flushes of workers.
    pub fn flush(&self) -> Result<()> {
        self.clock.beside(|| self.device.flush())
    }

    /// As [`write`](Self::write), with marks, as the store is in `state`.
    pub fn write_marks(&self, state: State, marks: &[Timestamp]) -> Result<()> {
        self.write(|superblock| {
            superblock.state = state;
            superblock.raise(marks);
        })
    }
}

fn page(superblock: &Superblock) -> AlignedBuf {
    let mut page = AlignedBuf::new(PAGE_BYTES);
    page.copy_from_slice(&superblock.encode()[..]);
    page
}
