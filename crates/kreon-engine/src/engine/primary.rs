//! What the primary of a group does with its store besides reading and writing it.

use std::sync::Arc;

use kreon_base::{Lsn, Result};
use kreon_device::Device;
use kreon_log::{LogRun, LogTap, Show};
use kreon_volume::Occupied;

use super::handle::Engine;
use crate::operation::Operation;
use crate::read::Seen;
use crate::recovery::{self, Examined};
use crate::regions::RegionState;

impl Engine {
    /// Applies a unit, and returns the position of the log behind it: it is landed, or durable, when the log is up to there.
    /// Nothing is awaited but room. `Lsn(0)` for a unit without operations.
    ///
    /// # Errors
    /// Those of a buffered write: nothing was applied.
    pub fn write_ahead(&self, operations: &[Operation<'_>]) -> Result<Lsn> {
        self.subsystems.writer.write_ahead(operations)
    }

    /// Shows the value of a key, and tells the newest version in memory that had a part in the answer.
    ///
    /// # Errors
    /// Those of a get.
    pub fn get_seen<R>(
        &self,
        region: &RegionState,
        key: &[u8],
        show: impl FnOnce(&[u8]) -> R,
    ) -> Result<(Option<R>, Seen)> {
        self.subsystems.reader.get_seen(region, key, Show(show))
    }

    /// Reads the committed bytes of the log; see [`LogTap::run`].
    ///
    /// # Errors
    /// `InvalidArgument`: what stood at `from` is not in memory any more.
    pub fn log_run(&self, from: Lsn, max_bytes: u32, f: impl FnOnce(LogRun<'_>)) -> Result<bool> {
        self.subsystems.storage.log.reader().run(from, max_bytes, f)
    }

    /// Reads the log for its mirror, also in other threads, without keeping the store open.
    pub fn log_tap(&self) -> LogTap {
        LogTap::new(&self.subsystems.storage.log)
    }

    /// Behind the last record of the log, or the last that is being appended.
    pub fn log_tail(&self) -> Lsn {
        self.subsystems.storage.log.tail()
    }

    /// Everything before this is durable here and on all counted members.
    pub fn log_durable(&self) -> Lsn {
        self.subsystems.storage.log.durable()
    }

    /// Has everything before `upto` written to the log's device, without asking the mirror: when that device was flushed
    /// afterwards, it is durable there. Claims nothing: [`log_durable`](Self::log_durable) stays as it is.
    ///
    /// # Errors
    /// `Poisoned` if a write fails, or one did before.
    pub fn write_log_out(&self, upto: Lsn) -> Result<()> {
        self.subsystems.storage.log.write_out(upto)
    }

    /// Start of the oldest unit that the log's mirror has not landed as a whole; the tail if there is none, or no mirror. A
    /// version at or above it may vanish with this primary: see [`Seen::is_landed`]. Never falls.
    pub fn unlanded_from(&self) -> Lsn {
        self.subsystems.storage.log.unlanded_from()
    }

    /// All that is in use on the volume, at one moment.
    ///
    /// # Errors
    /// `Closed`.
    pub fn occupied(&self) -> Result<Occupied> {
        let storage = &self.subsystems.storage;
        storage.check_open()?;
        let allocator = storage.allocator.lock();
        Ok(allocator.occupied())
    }

    /// What a volume holds, without opening it: its newest superblock and the end of its log. Writes nothing and uses up
    /// no incarnation.
    ///
    /// # Errors
    /// `NotFound` if there is no store; `Corruption` where an opening would tell it, but for damage of the image of L0;
    /// `Io`.
    pub fn examine(device: &Arc<dyn Device>) -> Result<Examined> {
        recovery::examine(device)
    }

    /// Ends the store at once and leaves its volume as a crash would: nothing more is made durable, and nothing
    /// is written but what is under way in the device. All calls of other threads end, with `Closed`, and so do the
    /// background threads. A second call, or one after [`close`](Self::close), does nothing.
    ///
    /// Waits for calls of the devices and of the log's mirror that are under way: whoever holds these ends such calls first
    /// if they could wait for long. The device itself is dropped with the last handle of the store.
    ///
    /// # Errors
    /// `Closed` in a forked child; `Io` if the lock of the volume could not be given up.
    pub fn abandon(&self) -> Result<()> {
        let storage = &self.subsystems.storage;
        storage.lifecycle.check_home()?;
        let mut threads = self.threads.lock();
        if !storage.lifecycle.close() {
            return Ok(());
        }
        storage.poison.close();
        storage.log.abandon();
        drop(self.subsystems.visibility.gate.close());
        storage.mapping.quiesce();
        self.join(&mut threads);
        let _changes = self.subsystems.versions.lock_changes();
        let _ledger = storage.ledger.lock();
        storage.device.unlock()
    }
}
