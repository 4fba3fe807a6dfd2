//! When buffered records go to the device, and how fast writers may append meanwhile.
//!
//! Full buffers and long runs are written at once, by threads in the background if there are any, or else by appenders
//! that need a buffer. Records that are old are written however short the run is, so that a killed process loses little.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kreon_base::{Lsn, Result};
use kreon_device::Reserve;
use kreon_format::{lsn_at, place_of};
use kreon_sync::{AtomicUsize, Mutex, Ordering};

use super::buffers::Buffers;
use super::cut::SEGMENT;
use super::framing::Framing;
use super::home::LogOptions;
use super::pause::Pause;
use super::poison::Poison;
use super::positions::Positions;
use super::sync_load::SyncLoad;
use super::throttle::Throttle;
use super::write_out::WriteOut;

/// Writers look at how far the device is behind when the log crosses a border of this.
pub(super) const LOOK_BYTES: u32 = 128 << 10;

/// Unwritten bytes that are worth a write of their own at the least: the device is at its full rate with writes of this
/// size. So much is written at once where buffers are few, or writers wait for durability.
pub(super) const STREAM_BYTES_MIN: u64 = 128 << 10;

/// The same at the most. A thread that begins a write takes a processor from a writer, which then waits for a turn of the
/// scheduler: rare writes make rare waits.
const STREAM_BYTES_MAX: u64 = 1 << 20;

/// So many writes of that size fit into what may be unwritten.
const STREAMS_UNWRITTEN: u64 = 8;

/// Most unwritten bytes while writers wait for durability: a flush waits for all of them. About a
/// millisecond of a fast device, and more than the calls that are under way at once then. The first writer that waits after
/// others that did not finds up to four times as much.
pub(super) const UNWRITTEN_MAX_WAITED: u64 = 1 << 20;

/// Decides when to write.
pub(super) struct LogOutput {
    write_out: WriteOut,
    sources: Sources,
    throttle: Throttle,
    /// Threads that write out.
    threads: AtomicUsize,
    /// The tail at a moment when not all before it was written.
    unwritten: Mutex<Option<(Lsn, Instant)>>,
    age_max: Duration,
    /// Most unwritten bytes: then a buffer is free when the open one is full.
    unwritten_max: u64,
    /// Unwritten bytes that are worth a write while nobody waits for durability.
    stream_bytes: u64,
}

/// What output works on.
pub(super) struct Sources {
    pub buffers: Arc<Buffers>,
    pub positions: Arc<Positions>,
    pub poison: Arc<Poison>,
    pub framing: Framing,
    pub load: Arc<SyncLoad>,
}

impl LogOutput {
    pub fn new(write_out: WriteOut, sources: Sources, options: &LogOptions) -> Self {
        let segments = (options.buffers_max as u64).saturating_sub(2);
        let unwritten_max = (segments * u64::from(SEGMENT)).max(u64::from(SEGMENT / 2));
        let stream_bytes = unwritten_max / STREAMS_UNWRITTEN;
        Self {
            write_out,
            sources,
            throttle: Throttle::default(),
            threads: AtomicUsize::new(0),
            unwritten: Mutex::default(),
            age_max: options.age_max,
            unwritten_max,
            stream_bytes: stream_bytes.clamp(STREAM_BYTES_MIN, STREAM_BYTES_MAX),
        }
    }

    /// Writes buffers to the device.
    pub fn write_out(&self) -> &WriteOut {
        &self.write_out
    }

    /// See [`Log::write_out_step`](super::Log::write_out_step).
    pub fn step(&self, now: Instant) -> Result<bool> {
        let tail = self.sources.buffers.tail();
        let written = self.sources.positions.written();
        // The call before went on behind the border, so less is left than lies between two.
        let least_bytes = (self.stream_bytes(now) / 2).max(STREAM_BYTES_MIN);
        let is_long = tail.0.saturating_sub(written.0) >= least_bytes;
        if is_long && self.write_out.write_ready(least_bytes as u32, Lsn::MAX)? {
            // There may be more than one step writes.
            self.wake();
            return Ok(true);
        }
        let mut unwritten = self.unwritten.lock();
        if written >= tail {
            *unwritten = None;
            return Ok(false);
        }
        match *unwritten {
            Some((seen, since)) if written < seen => {
                if now.saturating_duration_since(since) < self.age_max {
                    return Ok(false);
                }
                *unwritten = None;
                drop(unwritten);
                self.write_before(seen)?;
                Ok(true)
            }
            _ => {
                *unwritten = Some((tail, now));
                Ok(false)
            }
        }
    }

    /// See [`Log::write_out`](super::Log::write_out).
    pub fn write_before(&self, upto: Lsn) -> Result<()> {
        let upto = upto.min(self.sources.buffers.tail());
        if self.sources.positions.written() >= upto {
            return self.sources.poison.check();
        }
        let target = self.pad_to_block(upto);
        self.write_out.write_until(target)
    }

    /// Pads the log to the end of the block that holds the byte before `upto`, unless records fill it
    /// already; returns that end.
    ///
    /// # Panics
    /// If `upto` is behind the tail: padding ends at the first border and would never reach it.
    pub fn pad_to_block(&self, upto: Lsn) -> Lsn {
        let tail = self.sources.buffers.tail();
        assert!(upto <= tail, "padded to {upto}, behind the tail {tail}");
        let block_bytes = self.write_out.block_bytes();
        let (sequence, within) = place_of(upto);
        let target = lsn_at(sequence, within.next_multiple_of(block_bytes));
        loop {
            let current = self.sources.buffers.current();
            if current.tail() >= target {
                return target;
            }
            // What another writer reserves in between brings the tail closer to the target, too.
            if let Reserve::Reserved(room) = current.buffer().reserve_to_boundary(block_bytes) {
                self.sources.framing.pad(&current, room);
            }
        }
    }

    /// See [`Log::begin_writing`](super::Log::begin_writing).
    pub fn begin_writing(&self) {
        self.threads.fetch_add(1, Ordering::AcqRel);
        self.sources.buffers.make_ahead();
    }

    /// See [`Log::begin_writing`](super::Log::begin_writing).
    pub fn end_writing(&self) {
        let before = self.threads.fetch_sub(1, Ordering::AcqRel);
        assert!(before > 0, "more threads ended writing than began");
    }

    /// Whether there are such threads.
    fn is_written_for(&self) -> bool {
        self.threads.load(Ordering::Acquire) > 0
    }

    /// A step towards a free buffer: writes what fills one, or waits while the background writers do.
    pub fn make_way(&self, pause: &mut Pause) -> Result<()> {
        if self.is_written_for() {
            self.wake();
        } else if self
            .write_out
            .write_ready(STREAM_BYTES_MIN as u32, Lsn::MAX)?
        {
            return Ok(());
        }
        self.write_out.wait_to_land(pause)
    }

    /// Called by an appender whose `bytes` go over a border of [`LOOK_BYTES`] and end at `tail`. Wakes the threads that
    /// write if there is enough for a write. Where the device falls behind the appender waits here, often and briefly,
    /// rather than long for a free buffer.
    pub fn keep_pace(&self, tail: Lsn, bytes: u64) {
        let now = Instant::now();
        let stream_bytes = self.stream_bytes(now);
        if tail.0.saturating_sub(bytes) / stream_bytes != tail.0 / stream_bytes {
            self.wake();
        }
        if !self.is_written_for() {
            return;
        }
        let (written, landed) = (self.sources.positions.written(), self.write_out.landed());
        let done = written.min(landed).0;
        let most = match self.sources.load.is_waited(now) {
            true => self.unwritten_max.min(UNWRITTEN_MAX_WAITED),
            false => self.unwritten_max,
        };
        let delay = self.throttle.delay(now, tail.0, done, most);
        if !delay.is_zero() {
            kreon_sync::sleep(delay);
        }
        let mut pause = Pause::default();
        let is_far = || tail.0.saturating_sub(self.sources.positions.written().0) > most;
        while self.is_written_for() && is_far() && self.write_out.wait_to_land(&mut pause).is_ok() {
            // Perhaps they found nothing to write before a thread had copied its bytes.
            self.wake();
        }
        // The next append tells that the log is poisoned.
        let near = Lsn(tail.0.saturating_sub(most));
        if self.write_out.landed() < near {
            let _ = self.write_out.wait_for_mirror(near);
        }
    }

    /// Unwritten bytes that are worth a write.
    fn stream_bytes(&self, now: Instant) -> u64 {
        match self.sources.load.is_waited(now) {
            true => STREAM_BYTES_MIN,
            false => self.stream_bytes,
        }
    }

    /// See [`Log::wait_for_work`](super::Log::wait_for_work).
    pub fn wait_for_work(&self) {
        self.write_out.wakeup().wait_for(self.age_max / 2);
    }

    /// There may be something to write.
    pub fn wake(&self) {
        self.write_out.wakeup().call();
    }
}

#[cfg(test)]
impl LogOutput {
    pub fn positions(&self) -> Arc<Positions> {
        Arc::clone(&self.sources.positions)
    }
}
