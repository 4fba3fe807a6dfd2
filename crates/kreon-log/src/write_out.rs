//! Writing buffered segments to the device: a few calls at a time, so that it is never idle between two.
//!
//! Which blocks a call takes, and in which order calls land, is in [`calls`](super::calls). After a failed write the log is
//! poisoned, and all threads that wait for a call are woken.

use std::sync::Arc;

use kreon_base::{Error, Lsn, Result, planted};
use kreon_device::Device;
use kreon_sync::{Condvar, Mutex, Wakeup};

use super::buffers::Buffers;
use super::calls::{CallLimits, Calls, Run};
use super::home::LogHome;
use super::mirror::Elsewhere;
use super::pages::WrittenPages;
use super::pause::Pause;
use super::poison::Poison;
use super::positions::Positions;
use super::zeroes::zeroes;

/// Writes buffers to the device.
pub(super) struct WriteOut {
    device: Arc<dyn Device>,
    /// Blocks of this size are the unit of writing; see [`Device::block_bytes`].
    block_bytes: u32,
    pages: Arc<dyn WrittenPages>,
    buffers: Arc<Buffers>,
    positions: Arc<Positions>,
    poison: Arc<Poison>,
    elsewhere: Elsewhere,
    /// The write-out lock.
    calls: Mutex<Calls>,
    /// A call has landed, or none will any more; or the mirror has landed more.
    landed: Condvar,
    /// Wakes the thread that writes in the background.
    wakeup: Wakeup,
}

impl WriteOut {
    pub fn new(
        home: &LogHome,
        buffers: Arc<Buffers>,
        positions: Arc<Positions>,
        poison: Arc<Poison>,
        calls: Calls,
    ) -> Self {
        Self {
            block_bytes: home.block_bytes(),
            device: home.log_device(),
            elsewhere: home.elsewhere(),
            pages: Arc::clone(&home.pages),
            buffers,
            positions,
            poison,
            calls: Mutex::new(calls),
            landed: Condvar::new(),
            wakeup: Wakeup::default(),
        }
    }

    pub fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    /// There may be something to write: for the background thread.
    pub fn wakeup(&self) -> &Wakeup {
        &self.wakeup
    }

    /// Writes what can be written, in runs of at least `least_bytes` (but for ends of segments), nothing behind `upto`;
    /// whether that was anything.
    ///
    /// # Errors
    /// `Poisoned` if the write fails or an earlier one did.
    pub fn write_ready(&self, least_bytes: u32, upto: Lsn) -> Result<bool> {
        self.poison.check()?;
        let limits = CallLimits {
            least_bytes,
            upto,
            block_bytes: self.block_bytes,
        };
        let mut calls = self.calls.lock();
        let taken = calls.take(&self.buffers, &self.positions, limits);
        drop(calls);
        let Some(call) = taken else {
            return Ok(false);
        };
        let dies = Dies(self);
        let mut writes = call.runs.iter().map(Run::write).collect::<Result<Vec<_>>>();
        if let Ok(writes) = &mut writes
            && let Some(last) = writes.last_mut()
        {
            last.buffers.extend(zeroes(call.zeroes));
        }
        let outcome = writes.and_then(|writes| self.device.write(&writes));
        // A buffer is free for use as soon as its last call has landed.
        drop(call.runs);
        if outcome.is_ok() {
            self.land(call.number);
        }
        std::mem::forget(dies);
        outcome.map_err(|error| self.stop(&error.within("a write of the log")))?;
        Ok(true)
    }

    /// The call with this number has ended: lands it and those behind it that have, too, unless an earlier one is under
    /// way.
    ///
    /// Pages are kept before their call lands: as long as it has not, its segment is not complete, and cannot be released
    /// and used for something else. In the order of landing, and whole, because a page may belong to two calls: kept by the
    /// first of them it would show half of the record that both have.
    fn land(&self, number: u64) {
        let mut calls = self.calls.lock();
        calls.ended(number);
        while let Some(runs) = calls.next_landing() {
            drop(calls);
            for (offset_bytes, bytes) in runs.iter().filter_map(Run::whole_pages) {
                self.pages.written(offset_bytes, bytes);
            }
            planted!(HalfPageAdmitted => runs.iter().for_each(|run| run.keep_half(&*self.pages)));
            drop(runs);
            calls = self.calls.lock();
            calls.land(&self.positions);
            self.landed.notify_all();
        }
    }

    /// Writes until everything before `target`, the border of a block, is on the device. Waits for
    /// other threads to commit what they reserved before it, and for calls under way that hold some of it; begins none
    /// that writes more.
    pub fn write_until(&self, target: Lsn) -> Result<()> {
        let mut pause = Pause::default();
        while self.positions.written() < target {
            if !self.write_ready(0, target)? {
                self.wait_to_land(&mut pause)?;
            }
        }
        Ok(())
    }

    /// Waits a little: for a call under way to land, or else for threads that copy.
    ///
    /// # Errors
    /// `Poisoned` if a write failed, or a thread died while it copied.
    pub fn wait_to_land(&self, pause: &mut Pause) -> Result<()> {
        let mut calls = self.calls.lock();
        self.poison.check()?;
        if calls.is_any_under_way() {
            self.landed.wait(&mut calls);
            return Ok(());
        }
        let is_at_hole = calls.is_at_hole(&self.buffers);
        drop(calls);
        if is_at_hole {
            let error = Error::invalid("a thread died while it appended to the log");
            return Err(self.stop(&error));
        }
        pause.wait();
        Ok(())
    }

    /// See [`LogMirror::landed`](super::LogMirror::landed).
    pub fn landed(&self) -> Lsn {
        self.elsewhere.landed()
    }

    /// Waits until the mirror has landed everything before `position`.
    ///
    /// # Errors
    /// `Poisoned` if a write failed, or the mirror did; `Closed`.
    pub fn wait_for_mirror(&self, position: Lsn) -> Result<()> {
        let mut calls = self.calls.lock();
        while self.elsewhere.landed() < position {
            self.poison.check()?;
            self.landed.wait(&mut calls);
        }
        Ok(())
    }

    /// The mirror has landed more.
    pub fn mirror_landed(&self) {
        // A thread that waits has looked how far that was under this lock.
        drop(self.calls.lock());
        self.landed.notify_all();
    }

    /// Poisons the log and wakes all that wait for it. Returns what the caller tells.
    pub fn stop(&self, cause: &Error) -> Error {
        self.poison.set(cause);
        let told = self.poison.check().err();
        self.wakeup.call();
        // A thread that waits for a call has looked at the poison under this lock.
        drop(self.calls.lock());
        self.landed.notify_all();
        told.unwrap_or_else(|| cause.clone())
    }

    /// Bytes of zeroes that were written ahead of records.
    pub fn zeroed_bytes(&self) -> u64 {
        self.calls.lock().zeroed_bytes
    }
}

/// Stops the log if the thread dies while it writes: the call would never land.
struct Dies<'a>(&'a WriteOut);

impl Drop for Dies<'_> {
    fn drop(&mut self) {
        let error = Error::invalid("a thread died while it wrote the log");
        _ = self.0.stop(&error);
    }
}
