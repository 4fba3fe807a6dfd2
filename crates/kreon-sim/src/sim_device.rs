//! The simulated device.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use kreon_base::{Error, Result};
use kreon_device::{
    BLOCK_BYTES_MIN, Bounds, Device, DeviceStats, Read, Transfer, TransferQueue, Write,
};
use parking_lot::{Mutex, MutexGuard, RwLock};

use crate::dice::Dice;
use crate::fault::{Call, Effect, Fault};
use crate::history::History;
use crate::image::Image;
use crate::sim_queue::SimQueue;
use crate::state::{Begun, State};
use crate::turns::{Moment, Turns};

/// What a [`SimDevice`] is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimOptions {
    /// Alignment of transfers: a power of two from 512 to 4096.
    pub block_bytes: u32,
    /// How far it may grow.
    pub len_bytes_max: u64,
    /// Real space behind it, counted in pages that were written or allocated and not discarded.
    pub space_bytes_max: u64,
    /// Whether to record what is done. Without, there is no crash, and no memory is taken for it.
    pub record: bool,
    /// How long a write is in flight. A flush that another thread calls meanwhile does not cover it.
    pub write_time: Duration,
    /// Seed of the dice by which the transfers of its queues begin and end.
    pub queue_seed: u64,
}

impl Default for SimOptions {
    fn default() -> Self {
        Self {
            block_bytes: BLOCK_BYTES_MIN,
            len_bytes_max: u64::MAX,
            space_bytes_max: u64::MAX,
            record: true,
            write_time: Duration::ZERO,
            queue_seed: 0,
        }
    }
}

/// A [`Device`] in memory. See the crate's documentation.
///
/// With one thread everything that it does follows from the calls. With several, only the order of
/// their calls is open.
pub struct SimDevice {
    options: SimOptions,
    state: Mutex<State>,
    turns: RwLock<Option<Arc<dyn Turns>>>,
}

impl SimDevice {
    /// An empty device.
    pub fn new(options: SimOptions) -> Self {
        Self::from_image(Image::default(), options)
    }

    /// A device that holds `image`, durable.
    pub fn from_image(image: Image, options: SimOptions) -> Self {
        let state = State::new(image, options.record, options.space_bytes_max);
        Self {
            options,
            state: Mutex::new(state),
            turns: RwLock::new(None),
        }
    }

    /// Has `turns` decide from now on whose call is next.
    pub fn set_turns(&self, turns: Option<Arc<dyn Turns>>) {
        *self.turns.write() = turns;
    }

    /// What a reader saw so many flushes ago, 1 being right after the last; what the device held at
    /// first if it does not remember.
    pub fn past(&self, flushes: usize) -> Image {
        self.state.lock().past(flushes).clone()
    }

    /// What a reader sees now.
    pub fn image(&self) -> Image {
        self.state.lock().image.clone()
    }

    /// Everything done so far; empty if nothing is recorded.
    pub fn history(&self) -> History {
        self.state.lock().history.clone()
    }

    /// Number of events so far: a mark in the history.
    pub fn events(&self) -> usize {
        self.state.lock().history.events.len()
    }

    /// Lets `fault` wait for its call. Of several that befall the same call the first one given acts.
    pub fn inject(&self, fault: Fault) {
        self.state.lock().faults.add(fault);
    }

    /// Takes back all faults.
    pub fn clear_faults(&self) {
        self.state.lock().faults.clear();
    }

    /// How many calls met a fault. To try every single failure: inject the n-th for n = 1, 2, 3, ...
    /// until a run met none.
    pub fn faults_met(&self) -> u64 {
        self.state.lock().faults.met
    }

    /// How many calls of a kind there were.
    pub fn calls(&self, call: Call) -> u64 {
        self.state.lock().calls_of(call)
    }

    /// Every call fails from now on.
    pub fn power_off(&self) {
        let mut state = self.state.lock();
        state.faults.clear();
        let fault = Fault::nth_of_all(1, Effect::Io);
        state.faults.add(fault.for_ever());
    }

    /// Changes the real space behind the device: fills the disk, or makes room.
    pub fn set_space_bytes_max(&self, space_bytes_max: u64) {
        self.state.lock().space_bytes_max = space_bytes_max;
    }

    /// Real space in use.
    pub fn space_bytes(&self) -> u64 {
        self.state.lock().space_bytes()
    }

    /// Flips one bit (0 to 7) of the byte at `offset`, as rot would. Not part of the history.
    pub fn flip_bit(&self, offset: u64, bit: u8) {
        self.state.lock().image.flip_bit(offset, bit);
    }

    /// Checks a transfer as the calls that carry it out do.
    pub(crate) fn check_transfer(&self, transfer: &Transfer) -> Result<()> {
        let Some((offset, bytes)) = transfer.bytes()? else {
            return Ok(());
        };
        let bounds = self.bounds(&self.state.lock());
        bounds.check_buffers(offset, [bytes])
    }

    /// Begins a transfer of a queue with `depth` in flight: a read is done with it, a write shows from now on and may be
    /// on the device, a flush speaks for what has ended.
    pub(crate) fn begin_transfer(&self, transfer: &mut Transfer, depth: usize) -> Result<Begun> {
        match transfer {
            Transfer::Read {
                offset,
                buffer,
                len_bytes,
            } => {
                let (at, len) = (*offset, *len_bytes as u64);
                let mut state = self.begin(Call::Read, at..at.saturating_add(len))?;
                state.saw_depth(depth.saturating_sub(1), 1);
                let bytes = buffer.get_mut(..*len_bytes).unwrap_or_default();
                state.read(at, len, &mut [bytes]).map(|()| None)
            }
            Transfer::Write {
                offset,
                buffer,
                len_bytes,
            } => {
                let (at, len) = (*offset, *len_bytes as u64);
                let mut state = self.begin(Call::Write, at..at.saturating_add(len))?;
                state.saw_depth(depth.saturating_sub(1), 1);
                let bytes = buffer.get(..*len_bytes).unwrap_or_default();
                state.begin_write(at, bytes.to_vec())
            }
            Transfer::Flush => self.begin(Call::Flush, 0..0)?.begin_flush(),
        }
    }

    /// A transfer that has begun as `begun` is reported as done.
    pub(crate) fn end_transfer(&self, transfer: &Transfer, begun: Begun) {
        let Some(number) = begun else {
            return;
        };
        match transfer {
            Transfer::Read { .. } => {}
            Transfer::Write { .. } => self.state.lock().end_write(number),
            Transfer::Flush => self.state.lock().end_flush(number),
        }
    }

    fn bounds(&self, state: &State) -> Bounds {
        Bounds {
            block_bytes: self.options.block_bytes,
            len_bytes: state.image.len_bytes(),
        }
    }

    fn turn(&self, moment: Moment) -> Result<()> {
        let turns = self.turns.read().clone();
        match turns.is_none_or(|turns| turns.wait(moment)) {
            true => Ok(()),
            false => {
                let killed = std::io::Error::other("its process was killed");
                Err(Error::io(format!("{moment:?}"), killed))
            }
        }
    }

    /// The caller's turn to make a call has come, and time has passed.
    fn begin(&self, call: Call, range: Range<u64>) -> Result<MutexGuard<'_, State>> {
        self.turn(Moment::Before(call))?;
        let state = self.state.lock();
        let delay = state.faults.delay(call, &range);
        if delay.is_zero() {
            return Ok(state);
        }
        drop(state);
        std::thread::sleep(delay);
        Ok(self.state.lock())
    }

    /// Lets others make calls while one of this thread is in flight.
    fn within(&self, call: Call) -> Result<()> {
        self.turn(Moment::Within(call))?;
        if call == Call::Write && !self.options.write_time.is_zero() {
            std::thread::sleep(self.options.write_time);
        }
        Ok(())
    }

    fn read_one(&self, state: &mut State, read: &mut Read<'_>) -> Result<()> {
        let bounds = self.bounds(state);
        bounds.check_buffers(read.offset, read.buffers.iter().map(|b| &**b))?;
        let len_bytes = read.len_bytes();
        if len_bytes != 0 {
            state.read(read.offset, len_bytes, &mut read.buffers)?;
        }
        Ok(())
    }
}

impl Device for SimDevice {
    fn block_bytes(&self) -> u32 {
        self.options.block_bytes
    }

    fn len_bytes(&self) -> u64 {
        self.state.lock().image.len_bytes()
    }

    fn len_bytes_max(&self) -> u64 {
        self.options.len_bytes_max
    }

    fn grow(&self, len_bytes: u64) -> Result<()> {
        let mut state = self.begin(Call::Grow, 0..0)?;
        if len_bytes <= state.image.len_bytes() {
            return Ok(());
        }
        state.grow(len_bytes, self.options.len_bytes_max)
    }

    fn allocate(&self, offset: u64, len_bytes: u64) -> Result<()> {
        let mut state = self.begin(Call::Allocate, offset..offset.saturating_add(len_bytes))?;
        let range = self.bounds(&state).check_range(offset, len_bytes)?;
        state.allocate(range)
    }

    fn discard(&self, offset: u64, len_bytes: u64) -> Result<()> {
        let mut state = self.begin(Call::Discard, offset..offset.saturating_add(len_bytes))?;
        let range = self.bounds(&state).check_range(offset, len_bytes)?;
        state.discard(range)
    }

    /// Not while faults wait for their calls: a read may be one that meets a fault.
    fn is_blank(&self, offset: u64, len_bytes: u64) -> bool {
        let state = self.state.lock();
        state.faults.is_empty() && state.image.is_blank(offset, len_bytes)
    }

    fn read(&self, reads: &mut [Read<'_>]) -> Result<()> {
        let range = hull(reads.iter().map(|read| (read.offset, read.len_bytes())));
        let mut state = self.begin(Call::Read, range)?;
        state.saw_depth(0, reads.len());
        let mut first = Ok(());
        for read in reads {
            read.outcome = self.read_one(&mut state, read);
            if first.is_ok() {
                first = read.outcome.clone();
            }
        }
        first
    }

    fn write(&self, writes: &[Write<'_>]) -> Result<()> {
        let range = hull(writes.iter().map(|write| (write.offset, write.len_bytes())));
        let mut state = self.begin(Call::Write, range)?;
        let bounds = self.bounds(&state);
        for write in writes {
            bounds.check_buffers(write.offset, write.buffers.iter().copied())?;
        }
        state.saw_depth(0, writes.len());
        let mut begun = Vec::with_capacity(writes.len());
        let mut outcome = Ok(());
        for write in writes.iter().filter(|write| write.len_bytes() != 0) {
            match state.begin_write(write.offset, write.buffers.concat()) {
                Ok(number) => begun.push(number),
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        drop(state);
        // What is in flight when its process is killed ends; nobody is told.
        let is_alive = self.within(Call::Write);
        let mut state = self.state.lock();
        for number in begun.into_iter().flatten() {
            state.end_write(number);
        }
        is_alive.and(outcome)
    }

    fn flush(&self) -> Result<()> {
        let mut state = self.begin(Call::Flush, 0..0)?;
        let begun = state.begin_flush()?;
        drop(state);
        self.within(Call::Flush)?;
        if let Some(flush) = begun {
            self.state.lock().end_flush(flush);
        }
        Ok(())
    }

    fn transfer_queue(self: Arc<Self>, depth: usize) -> Box<dyn TransferQueue> {
        let number = self.state.lock().next_queue();
        let dice = Dice::new(Dice::of(self.options.queue_seed, number));
        Box::new(SimQueue::new(self, dice, depth))
    }

    fn stats(&self) -> DeviceStats {
        self.state.lock().stats()
    }
}

/// The range that covers all parts, which are given by offset and length.
fn hull(parts: impl Iterator<Item = (u64, u64)>) -> Range<u64> {
    parts
        .map(|(offset, len_bytes)| offset..offset.saturating_add(len_bytes))
        .reduce(|all, part| all.start.min(part.start)..all.end.max(part.end))
        .unwrap_or_default()
}
