//! Rolling: opening the next segment because the current one is full.
//!
//! Invariants: one thread at a time rolls, and holds the roll lock for it; a segment becomes the current one only when the
//! one before has no room left.

use std::sync::Arc;
use std::time::Instant;

use kreon_base::{Lsn, Result, SegmentId};
use kreon_device::{AppendBuffer, BLOCK_BYTES_MAX, Reserve};
use kreon_format::LogSegmentHeader;
use kreon_sync::{Mutex, MutexGuard};
use kreon_volume::Purpose;

use super::buffered::{Buffered, ChainLink};
use super::buffers::Buffers;
use super::cut::{PAYLOAD_START, SEGMENT};
use super::framing::Framing;
use super::home::LogHome;
use super::output::LogOutput;
use super::pause::Pause;
use super::poison::Poison;
use super::positions::Positions;
use super::segments::SegmentTable;
use super::supply::Supply;
use super::sync_load::SyncLoad;

/// Opens segments.
pub(super) struct Roller {
    /// The roll lock.
    rolling: Mutex<()>,
    supply: Supply,
    parts: RollParts,
}

/// What a roll works on.
pub(super) struct RollParts {
    pub home: LogHome,
    pub table: Arc<SegmentTable>,
    pub buffers: Arc<Buffers>,
    pub positions: Arc<Positions>,
    pub poison: Arc<Poison>,
    pub framing: Framing,
    pub output: Arc<LogOutput>,
    pub load: Arc<SyncLoad>,
}

/// The roll lock, held.
pub(super) struct Rolling<'a> {
    roller: &'a Roller,
    _lock: MutexGuard<'a, ()>,
}

impl Roller {
    pub fn new(supply: Supply, parts: RollParts) -> Self {
        Self {
            rolling: Mutex::default(),
            supply,
            parts,
        }
    }

    /// Waits for the roll lock.
    ///
    /// # Errors
    /// `Poisoned` after a failed write or flush.
    pub fn lock(&self) -> Result<Rolling<'_>> {
        let lock = self.rolling.lock();
        self.parts.poison.check()?;
        Ok(Rolling {
            roller: self,
            _lock: lock,
        })
    }

    /// Opens another segment because the current one has no room for `bytes`, unless another thread did
    /// while this one waited, or waits until the mirror has landed what stands in the oldest buffer.
    ///
    /// # Errors
    /// `OutOfSpace`, with nothing changed: smaller records may still go into the current segment, and
    /// the next call tries again.
    pub fn roll_for(&self, bytes: usize, purpose: Purpose) -> Result<()> {
        let rolling = self.lock()?;
        let current = rolling.current();
        if bytes <= current.rest_bytes() as usize {
            return Ok(());
        }
        if rolling.extend(&current, bytes, purpose)? {
            return Ok(());
        }
        if let Some(position) = self.parts.buffers.held_for_mirror() {
            // Not under the roll lock: shorter records may still go into the current segment.
            drop(rolling);
            return self.parts.output.write_out().wait_for_mirror(position);
        }
        rolling.supply(2, purpose)?;
        let limit = self.supply.back_next(bytes, purpose)?;
        let next = rolling.open_segment()?;
        next.buffer().set_limit(limit);
        rolling.pad_rest(&current);
        rolling.publish(Arc::new(next));
        Ok(())
    }

    /// See [`Log::restrain`](super::Log::restrain).
    pub fn restrain(&self) {
        if let Some(_rolling) = self.rolling.try_lock() {
            let current = self.parts.buffers.current();
            let used = current.buffer().reserved_bytes();
            let limit = used.next_multiple_of(BLOCK_BYTES_MAX);
            let limit = limit.min(current.buffer().limit_bytes());
            current.buffer().set_limit(limit);
        }
    }

    /// Reserves segments and a buffer ahead of need, if there was a roll since.
    pub fn reserve_ahead(&self) {
        self.supply
            .reserve_ahead(|| self.parts.buffers.make_ahead());
    }

    /// See [`Log::give_up_ahead`](super::Log::give_up_ahead).
    pub fn give_up_ahead(&self) -> Result<Vec<SegmentId>> {
        let _rolling = self.rolling.lock();
        self.supply.give_up_ahead()
    }
}

impl Rolling<'_> {
    /// The segment that takes records.
    pub fn current(&self) -> Arc<Buffered> {
        self.roller.parts.buffers.current_full()
    }

    /// Asks for more room in the current segment; whether `bytes` fit then. If they do not, all of it may be written.
    ///
    /// # Errors
    /// `OutOfSpace`, with nothing changed.
    pub fn extend(&self, current: &Buffered, bytes: usize, purpose: Purpose) -> Result<bool> {
        let bytes = u32::try_from(bytes).unwrap_or(SEGMENT);
        let space = &self.roller.parts.home.space;
        // A thread that pads the end for a flush may take what was asked for.
        while current.rest_bytes() < bytes {
            let limit = current.buffer().limit_bytes();
            if limit == SEGMENT {
                return Ok(false);
            }
            let needed = current.buffer().reserved_bytes().saturating_add(bytes);
            let range = (limit, needed.min(SEGMENT));
            let limit = space.back(current.link().segment, range, purpose)?;
            current.buffer().set_limit(limit);
        }
        Ok(true)
    }

    /// See [`Supply::reserve`].
    pub fn supply(&self, count: usize, purpose: Purpose) -> Result<()> {
        self.roller.supply.reserve(count, purpose)
    }

    /// See [`Supply::back_all`].
    pub fn back_all(&self, count: usize, purpose: Purpose) -> Result<()> {
        self.roller.supply.back_all(count, purpose)
    }

    /// Opens the next segment, with a buffer that may have to be waited for. No other thread sees it yet. It and the segment
    /// behind it are reserved.
    pub fn open_segment(&self) -> Result<Buffered> {
        let parts = &self.roller.parts;
        let mut pause = Pause::default();
        loop {
            parts.poison.check()?;
            if let Some(buffer) = parts.buffers.try_take() {
                let open = |link| {
                    let durable = parts.positions.claim();
                    open_segment(&parts.home, &parts.table, link, buffer, durable)
                };
                return self.roller.supply.take_next(open);
            }
            match parts.buffers.held_for_mirror() {
                Some(position) => parts.output.write_out().wait_for_mirror(position)?,
                None => parts.output.make_way(&mut pause)?,
            }
        }
    }

    /// Leaves no room in `current`.
    fn pad_rest(&self, current: &Buffered) {
        if let Reserve::Reserved(rest) = current.buffer().reserve_rest() {
            self.roller.parts.framing.pad(current, rest);
        }
    }

    /// Makes `next` the current segment. The one before has no room left.
    pub fn publish(&self, next: Arc<Buffered>) {
        let parts = &self.roller.parts;
        parts.buffers.publish(next);
        self.roller.supply.rolled();
        parts.load.rolled(Instant::now());
        parts.output.wake();
    }
}

/// The segment at `link` in `buffer`, with its header, which tells how far the log is `durable`.
pub(super) fn open_segment(
    home: &LogHome,
    table: &SegmentTable,
    link: ChainLink,
    buffer: AppendBuffer,
    durable: Lsn,
) -> Buffered {
    let header = LogSegmentHeader {
        store: home.store,
        log: home.log,
        segment: link.segment,
        sequence: link.sequence,
        incarnation: home.incarnation,
        previous: table.by_sequence(link.sequence.wrapping_sub(1)),
        next: Some(link.next),
        durable,
    };
    let front = header.encode();
    let opened = Buffered::new(link, buffer, front.as_slice(), PAYLOAD_START);
    table.insert(link.segment, link.sequence);
    opened
}

#[cfg(test)]
impl Rolling<'_> {
    /// Leaves no room in the current segment, all of which may be written.
    pub fn end_current(&self) {
        let current = self.current();
        current.buffer().set_limit(SEGMENT);
        self.pad_rest(&current);
    }
}
