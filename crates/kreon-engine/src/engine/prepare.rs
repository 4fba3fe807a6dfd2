//! Segments that are written before the log needs them, where writers wait for durability all the time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kreon_base::{ErrorKind, Result, SEGMENT_BYTES, SegmentId};
use kreon_device::{BLOCK_BYTES_MAX, Write};

use super::core::Core;
use crate::log::Stock;
use crate::sync::Ordering;

/// So many are written at once. Each write makes the flush beside it slow, as the file system has to note that the blocks
/// hold data, however many there are; but flushes also wait for the write itself.
const TOGETHER: u32 = 2;

/// Between two writes flushes go on undisturbed.
const GAP: Duration = Duration::from_millis(10);

/// While there is a stock, it is looked at so often whether it is still wanted.
const PATIENCE: Duration = Duration::from_secs(10);

/// The same, while there is none.
const PATIENCE_IDLE: Duration = Duration::from_secs(3600);

const ZEROES_BYTES: usize = 64 << 10;

#[repr(align(4096))]
struct Zeroes([u8; ZEROES_BYTES]);

const _: () = assert!(align_of::<Zeroes>() >= BLOCK_BYTES_MAX as usize);

static ZEROES: Zeroes = Zeroes([0; ZEROES_BYTES]);

impl Core {
    /// The body of the thread that writes segments ahead.
    pub fn prepare_loop(self: &Arc<Self>) {
        let log = &self.parts.log;
        let mut has_stock = false;
        while !self.closed.load(Ordering::Acquire) {
            log.wait_for_stock(if has_stock { PATIENCE } else { PATIENCE_IDLE });
            let stock = log.stock(Instant::now());
            if self.closed.load(Ordering::Acquire) || self.parts.poison.check().is_err() {
                break;
            }
            if stock != Stock::default() || has_stock {
                has_stock = stock != Stock::default();
                // A lack of space is the business of those who need it.
                let _ = self.keep_stock(stock);
            }
        }
        if has_stock && self.parts.poison.check().is_ok() {
            let _ = self.keep_stock(Stock::default());
        }
    }

    /// Keeps written segments ready for the log, or gives them back.
    pub(super) fn keep_stock(&self, stock: Stock) -> Result<()> {
        let kept = stock.kept.max(stock.written);
        let mut allocator = self.parts.allocator.lock();
        allocator.set_written_stock(kept);
        if kept == 0 {
            return allocator.trim();
        }
        let is_short = allocator.is_short_of_written(stock.written);
        drop(allocator);
        while is_short && !self.closed.load(Ordering::Acquire) {
            if !self.write_segments(stock.written)? {
                break;
            }
            crate::sync::sleep(GAP);
        }
        Ok(())
    }

    /// The same for whoever asks for it, once.
    pub(super) fn prepare_some(&self) -> Result<()> {
        self.parts.poison.check()?;
        self.parts.allocator.lock().set_written_stock(TOGETHER);
        self.write_segments(TOGETHER).map(|_| ())
    }

    /// Writes zeroes to some free segments, until there are `wanted`; whether there were any. No flush: the log's own
    /// follows, and an error that only this one were told of would not stop the log.
    fn write_segments(&self, wanted: u32) -> Result<bool> {
        let ids = self
            .parts
            .allocator
            .lock()
            .begin_writing(wanted, TOGETHER)?;
        if ids.is_empty() {
            return Ok(false);
        }
        let mut taken = Taken {
            core: self,
            ids: &ids,
            is_done: false,
        };
        let outcome = self.write_zeroes(&ids);
        taken.is_done = outcome.is_ok();
        drop(taken);
        if let Err(error) = &outcome
            && error.kind() != ErrorKind::OutOfSpace
        {
            self.parts.poison.set(error);
        }
        outcome.map(|()| true)
    }

    fn write_zeroes(&self, ids: &[SegmentId]) -> Result<()> {
        let pieces = SEGMENT_BYTES as usize / ZEROES_BYTES;
        let zeroes = |count: usize| vec![&ZEROES.0[..]; count * pieces];
        // Neighbours in one transfer: the file system notes it once.
        let runs = ids.chunk_by(|one, next| one.0 + 1 == next.0);
        let writes = runs.filter_map(|run| {
            let first = run.first()?;
            Some(Write::vectored(first.offset_bytes(), zeroes(run.len())))
        });
        let writes: Vec<_> = writes.collect();
        let outcome = self.parts.device.write(&writes);
        outcome.map_err(|error| error.within("a write ahead of the log"))
    }
}

/// Segments that are being written. They can be had again afterwards, also if a device panics.
struct Taken<'a> {
    core: &'a Core,
    ids: &'a [SegmentId],
    is_done: bool,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut allocator = self.core.parts.allocator.lock();
        if let Err(error) = allocator.end_writing(self.ids, self.is_done) {
            tracing::warn!(%error, "segments that were written ahead are lost until the store is reopened");
        }
    }
}
