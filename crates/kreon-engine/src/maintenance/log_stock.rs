//! A stock of log segments that were written ahead, for stores with a steady stream of durable writes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kreon_base::{ErrorKind, Result, SEGMENT_BYTES, SegmentId};
use kreon_device::{BLOCK_BYTES_MAX, Write};

use crate::state::Storage;
use kreon_log::SegmentDemand;

/// So many are taken at once.
const TOGETHER: u32 = 4;

/// Between two takings flushes go on undisturbed.
const GAP: Duration = Duration::from_millis(10);

/// One write. A flush beside it waits for the device to take the write, and the flush behind it for the file system to note
/// that the blocks hold data: larger pieces make fewer flushes slower.
const PIECE_BYTES: usize = 256 << 10;

/// Between two pieces flushes go on.
const PIECE_GAP: Duration = Duration::from_millis(1);

/// While there is a stock, it is looked at so often whether it is still wanted.
const PATIENCE: Duration = Duration::from_secs(10);

/// The same, while there is none.
const PATIENCE_IDLE: Duration = Duration::from_secs(3600);

const ZEROES_BYTES: usize = 64 << 10;

#[repr(align(4096))]
struct Zeroes([u8; ZEROES_BYTES]);

const _: () = assert!(align_of::<Zeroes>() >= BLOCK_BYTES_MAX as usize);
const _: () = assert!(
    SEGMENT_BYTES.is_multiple_of(PIECE_BYTES as u64) && PIECE_BYTES.is_multiple_of(ZEROES_BYTES)
);

static ZEROES: Zeroes = Zeroes([0; ZEROES_BYTES]);

/// Keeps written segments ready.
pub struct LogStock {
    pub(super) storage: Arc<Storage>,
}

impl LogStock {
    /// Writes segments ahead until the store is closed.
    pub fn work(&self) {
        let log = &self.storage.log;
        let mut has_stock = false;
        while !self.storage.lifecycle.is_closed() {
            log.wait_for_demand(if has_stock { PATIENCE } else { PATIENCE_IDLE });
            let demand = log.segment_demand(Instant::now());
            if self.storage.lifecycle.is_closed() || self.storage.poison.check().is_err() {
                break;
            }
            if demand != SegmentDemand::default() || has_stock {
                has_stock = demand != SegmentDemand::default();
                // A lack of space is reported to the writes that need some.
                let _ = self.keep_stock(demand);
            }
        }
        if has_stock && self.storage.poison.check().is_ok() {
            let _ = self.keep_stock(SegmentDemand::default());
        }
    }

    /// Keeps written segments ready for the log, or gives them back.
    pub fn keep_stock(&self, demand: SegmentDemand) -> Result<()> {
        let kept = demand.kept.max(demand.written);
        let mut allocator = self.storage.allocator.lock();
        allocator.set_written_stock(kept);
        if kept == 0 {
            return allocator.trim();
        }
        let is_short = allocator.is_short_of_written(demand.written);
        drop(allocator);
        while is_short && !self.storage.lifecycle.is_closed() {
            if !self.write_segments(demand.written)? {
                break;
            }
            kreon_sync::sleep(GAP);
        }
        Ok(())
    }

    /// The same, once, in the calling thread.
    pub fn prepare_some(&self) -> Result<()> {
        self.storage.poison.check()?;
        self.storage.allocator.lock().set_written_stock(TOGETHER);
        self.write_segments(TOGETHER).map(|_| ())
    }

    /// Writes zeroes to some free segments, until there are `wanted`; whether there were any. No flush: the log's own
    /// follows, and an error that only this one were told of would not stop the log.
    fn write_segments(&self, wanted: u32) -> Result<bool> {
        let ids = self
            .storage
            .allocator
            .lock()
            .begin_writing(wanted, TOGETHER)?;
        if ids.is_empty() {
            return Ok(false);
        }
        let mut taken = Taken {
            storage: &self.storage,
            ids: &ids,
            is_done: false,
        };
        let outcome = self.write_zeroes(&ids);
        taken.is_done = outcome.is_ok();
        drop(taken);
        if let Err(error) = &outcome
            && error.kind() != ErrorKind::OutOfSpace
        {
            self.storage.poison.set(error);
        }
        outcome.map(|()| true)
    }

    fn write_zeroes(&self, ids: &[SegmentId]) -> Result<()> {
        // Other members prepare their own.
        let mirroring = &self.storage.options.mirroring;
        let device = mirroring.log_device(&self.storage.device);
        let zeroes = vec![&ZEROES.0[..]; PIECE_BYTES / ZEROES_BYTES];
        for id in ids {
            let segment = id.offset_bytes()..id.offset_bytes() + SEGMENT_BYTES;
            for at in segment.step_by(PIECE_BYTES) {
                let outcome = device.write(&[Write::vectored(at, zeroes.clone())]);
                outcome.map_err(|error| error.within("a write ahead of the log"))?;
                kreon_sync::sleep(PIECE_GAP);
            }
        }
        Ok(())
    }
}

/// Segments that are being written. They can be had again afterwards, also if a device panics.
struct Taken<'a> {
    storage: &'a Storage,
    ids: &'a [SegmentId],
    is_done: bool,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut allocator = self.storage.allocator.lock();
        if let Err(error) = allocator.end_writing(self.ids, self.is_done) {
            tracing::warn!(%error, "segments that were written ahead are lost until the store is reopened");
        }
    }
}
