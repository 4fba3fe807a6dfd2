//! Calls of an open store that take long, or that return before their work is durable.

use std::sync::Arc;
use std::time::Duration;

use kreon_base::{Attributes, ErrorKind, Lsn, Result, Timestamp};

use super::handle::Engine;
use crate::backup::{BackupOptions, BackupReport, Shelf, Tell};
use crate::changes::{Changes, Position};
use crate::inspect::VerifyReport;
use crate::operation::Operation;
use crate::options::Durability;
use crate::progress::Progress;
use crate::regions::RegionState;
use crate::transaction::{self, Current, Isolation, Transaction, Update};
use crate::visibility::OpenSnapshot;
use crate::write::Durable;

impl Engine {
    /// Applies a unit now; the future ends when it is durable.
    pub fn write_async(&self, operations: &[Operation<'_>]) -> Durable {
        let subsystems = &self.subsystems;
        subsystems.storage.log.expect_wait();
        let applied = subsystems.writer.write_ahead(operations);
        Durable::new(&subsystems.storage, applied)
    }

    /// A transaction that begins now, of at most `bytes_max` bytes of memory.
    pub fn transaction(&self, isolation: Isolation, bytes_max: usize) -> Transaction {
        let subsystems = &self.subsystems;
        Transaction::new(
            &subsystems.reader,
            &subsystems.visibility,
            isolation,
            bytes_max,
        )
    }

    /// Ends a transaction of this store.
    ///
    /// # Errors
    /// `Conflict`: what it wrote or read was changed since it began. Those of a get and of a write. Nothing was applied,
    /// but for `Io`.
    pub fn commit(&self, transaction: Transaction, durability: Durability) -> Result<()> {
        self.subsystems.storage.check_open()?;
        transaction.commit(&self.subsystems.writer, durability)
    }

    /// Does with a key what `change` says of its value, as one step for all other writers; returns the value before.
    /// `change` is called again if another write came between.
    ///
    /// # Errors
    /// Those of a get, of a write and of `change`.
    pub fn update(
        &self,
        region: &RegionState,
        key: &[u8],
        durability: Durability,
        change: impl FnMut(Option<Current<'_>>) -> Result<Update>,
    ) -> Result<Option<Vec<u8>>> {
        let (reader, writer) = (&self.subsystems.reader, &self.subsystems.writer);
        transaction::update((reader, writer), (region, key), durability, change)
    }

    /// What is kept beside the value of a key, now or at a snapshot; `None`: it has no value. With the time of that read.
    ///
    /// # Errors
    /// As those of a get.
    pub fn attributes(
        &self,
        region: &RegionState,
        key: &[u8],
        snapshot: Option<&OpenSnapshot>,
    ) -> Result<Option<(Attributes, Timestamp)>> {
        let reader = &self.subsystems.reader;
        let point = match snapshot {
            Some(snapshot) => snapshot.point(),
            None => reader.now().settled(),
        };
        let found = reader.attributes(region, key, point)?;
        Ok(found.map(|attributes| (attributes, point.time())))
    }

    /// When a value ends that is written now and lives for `ttl`: to the millisecond, rounded up, and not after
    /// [`Timestamp::MAX`].
    ///
    /// # Errors
    /// `InvalidArgument` for no time at all.
    pub fn expiry_after(&self, ttl: Duration) -> Result<Timestamp> {
        self.subsystems.writer.expiry_after(ttl)
    }

    /// The future ends when all writes so far are durable.
    pub fn sync_async(&self) -> Durable {
        let storage = &self.subsystems.storage;
        let end = match storage.options.read_only {
            true => storage.check_open().map(|()| Lsn(0)),
            false => storage.check_writable().map(|()| storage.log.tail()),
        };
        Durable::new(storage, end)
    }

    /// Checks everything, and reports its progress.
    ///
    /// # Errors
    /// `Closed`, or what kept it from going on. Damage is not an error but a line of the report.
    pub fn verify_with(&self, tell: &mut dyn FnMut(Progress)) -> Result<VerifyReport> {
        self.subsystems.storage.check_open()?;
        self.subsystems.inspector.verify(tell)
    }

    /// Makes one packed tree of all levels of each of `regions`, empties segments of the log that have dead records, and
    /// frees what is not needed. Reports its progress.
    ///
    /// # Errors
    /// Those of a spill: what was not done is as it was; `Busy` during a load into one of them.
    pub fn compact(
        &self,
        regions: &[Arc<RegionState>],
        tell: &mut dyn FnMut(Progress),
    ) -> Result<()> {
        let compactor = &self.subsystems.compactor;
        match compactor.compact(regions, tell) {
            Err(error)
                if error.kind() == ErrorKind::OutOfSpace
                    && self.subsystems.versions.give_up_all_kept()? =>
            {
                compactor.compact(regions, tell)
            }
            outcome => outcome,
        }
    }

    /// The same with all regions. Those that are dropped meanwhile are passed over.
    ///
    /// # Errors
    /// Those of [`compact`](Self::compact).
    pub fn compact_all(&self, tell: &mut dyn FnMut(Progress)) -> Result<()> {
        loop {
            let regions = self.subsystems.regions.list();
            match self.compact(&regions, tell) {
                Err(error)
                    if error.kind() == ErrorKind::Closed
                        && self.subsystems.storage.check_writable().is_ok()
                        && regions.iter().any(|region| region.check().is_err()) => {}
                outcome => return outcome,
            }
        }
    }

    /// A feed of all durable units from `from` on.
    ///
    /// # Errors
    /// `NotFound`: the log is not kept from there on any more. `InvalidArgument`: `from` is within a unit or ahead of the
    /// durable end, or there is no feed. `Closed`, `Corruption`, `Io`.
    pub fn changes(&self, from: Position) -> Result<Changes> {
        self.subsystems.changes.open(from)
    }

    /// The oldest position from which the log is kept.
    ///
    /// # Errors
    /// `InvalidArgument`: there is no feed. `Closed`, `Corruption`, `Io`.
    pub fn changes_start(&self) -> Result<Position> {
        self.subsystems.changes.start()
    }

    /// The position behind the last durable unit.
    ///
    /// # Errors
    /// As [`changes_start`](Self::changes_start).
    pub fn changes_end(&self) -> Result<Position> {
        self.subsystems.changes.end()
    }

    /// Brings all writes so far to `shelf`, as its newest backup.
    ///
    /// # Errors
    /// `ReadOnly`; those of a sync; `Corruption` names what does not verify here; `InvalidArgument` if the shelf is of another store,
    /// `Busy` if somebody else writes to it; `OutOfSpace` and `Io` of either; that of `tell`. The shelf has the backups
    /// that it had, whole.
    pub fn backup(
        &self,
        shelf: &dyn Shelf,
        options: &BackupOptions,
        tell: Tell<'_>,
    ) -> Result<BackupReport> {
        let acknowledged = self.subsystems.storage.log.tail();
        // The log of a reader ends where the replay stopped, which may be before what the catalogue on the device names as
        // durable: within a unit that never ended. A writer's first checkpoint has mended that.
        self.subsystems.storage.check_writable()?;
        self.sync()?;
        let backups = &self.subsystems.backups;
        backups.run(shelf, options, acknowledged, tell)
    }
}
