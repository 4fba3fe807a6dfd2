//! A transaction from its beginning to its end.

use std::sync::Arc;

use kreon_base::{Attributes, Error, Result, Timestamp};
use kreon_log::TakeValue;

use super::check::Unchanged;
use super::reads::{RangePlace, Reads};
use super::scan::TransactionScan;
use super::writes::{Own, Put, Writes};
use crate::operation::{Expiry, Operation, Terms};
use crate::options::Durability;
use crate::read::{KeyBounds, LevelsSeen, Reader, Scan};
use crate::regions::RegionState;
use crate::visibility::{OpenSnapshot, Visibility};
use crate::write::{DeletedRange, Writer};

/// Most memory that a transaction takes, in bytes, unless it is told otherwise. A unit of the log is kept in memory until
/// its commit, so most that this bounds is keys and values.
pub const TRANSACTION_BYTES_MAX: usize = 64 << 20;

/// What a commit checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// Keys that were written or read for update: the first of two transactions that change a key wins. Two that
    /// read what the other one changes may both commit (write skew).
    Snapshot,
    /// Keys and ranges that were read, too: all transactions of this kind that write take effect one after the other, at
    /// their commits; one that only reads, at its snapshot.
    #[default]
    Serializable,
}

/// A state of a transaction's writes to return to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Savepoint(u64);

/// Reads at a snapshot with own writes on top, and one commit. Dropping it forgets its writes.
pub struct Transaction {
    reader: Arc<Reader>,
    visibility: Arc<Visibility>,
    snapshot: Arc<OpenSnapshot>,
    /// From before the snapshot.
    levels: LevelsSeen,
    isolation: Isolation,
    bytes_max: usize,
    reads: Reads,
    writes: Writes,
}

impl Transaction {
    /// A transaction at the present moment, of at most so many bytes of memory.
    pub fn new(
        reader: &Arc<Reader>,
        visibility: &Arc<Visibility>,
        isolation: Isolation,
        bytes_max: usize,
    ) -> Self {
        // Before the snapshot: all that these levels show is older.
        let levels = LevelsSeen::of(&reader.view());
        Self {
            reader: Arc::clone(reader),
            visibility: Arc::clone(visibility),
            snapshot: Arc::new(OpenSnapshot::new(visibility)),
            levels,
            isolation,
            // Places of read keys have 32 bits.
            bytes_max: bytes_max.min(u32::MAX as usize),
            reads: Reads::default(),
            writes: Writes::default(),
        }
    }

    /// Hands the value of `key` to `take`: the transaction's own, or that of its snapshot.
    ///
    /// # Errors
    /// Those of a get; `InvalidArgument` if the transaction has no memory left.
    pub fn get<T: TakeValue>(
        &mut self,
        region: &Arc<RegionState>,
        key: &[u8],
        take: T,
    ) -> Result<Option<T::Taken>> {
        self.get_as(region, key, take, false)
    }

    /// As [`get`](Self::get); the commit fails if the key was changed by then, whatever the isolation.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_for_update<T: TakeValue>(
        &mut self,
        region: &Arc<RegionState>,
        key: &[u8],
        take: T,
    ) -> Result<Option<T::Taken>> {
        self.get_as(region, key, take, true)
    }

    fn get_as<T: TakeValue>(
        &mut self,
        region: &Arc<RegionState>,
        key: &[u8],
        take: T,
        is_for_update: bool,
    ) -> Result<Option<T::Taken>> {
        region.check()?;
        self.note_read(region, key, is_for_update)?;
        match self.writes.own(region.id, key) {
            Own::Value(value, _) => return Ok(Some(take.take(value))),
            Own::Deleted => return Ok(None),
            Own::Unknown => {}
        }
        self.reader
            .get_value(region, key, self.snapshot.point(), take)
    }

    /// An own write is looked at in any case, but it may be undone.
    fn note_read(
        &mut self,
        region: &Arc<RegionState>,
        key: &[u8],
        is_for_update: bool,
    ) -> Result<()> {
        let is_own = !matches!(self.writes.own(region.id, key), Own::Unknown);
        if is_for_update || (self.isolation == Isolation::Serializable && !is_own) {
            self.make_room(Reads::bytes_of_key(key))?;
            self.reads.add_key(region, key, is_for_update);
        }
        Ok(())
    }

    /// A scan of a range, from both ends, with own writes.
    ///
    /// # Errors
    /// `InvalidArgument` if the transaction has no memory left.
    pub fn scan(
        &mut self,
        region: &Arc<RegionState>,
        bounds: KeyBounds,
    ) -> Result<TransactionScan<'_>> {
        let mut place = None;
        if self.isolation == Isolation::Serializable {
            self.make_room(Reads::bytes_of_range(&bounds))?;
            place = Some(self.reads.add_range(region, bounds.clone()));
        }
        let snapshot = Arc::clone(&self.snapshot);
        let scan = Scan::new(&self.reader, region, snapshot, bounds.clone());
        Ok(TransactionScan::new(self, (region, place), bounds, scan))
    }

    /// Sets the value of `key`.
    ///
    /// # Errors
    /// `InvalidArgument`: key or value are too long, or the transaction has no memory left. `Closed`: the region was
    /// dropped.
    pub fn put(&mut self, region: &Arc<RegionState>, key: &[u8], value: &[u8]) -> Result<()> {
        self.set(region, key, Some(value), Expiry::OfRegion)
    }

    /// Sets the value of `key` until `expires`.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn put_until(
        &mut self,
        region: &Arc<RegionState>,
        key: &[u8],
        value: &[u8],
        expires: Timestamp,
    ) -> Result<()> {
        self.set(region, key, Some(value), Expiry::At(expires))
    }

    /// What is kept beside the value of `key`: that of the transaction, or that of its snapshot; `None`: there is none.
    /// The key counts as read.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn attributes(
        &mut self,
        region: &Arc<RegionState>,
        key: &[u8],
    ) -> Result<Option<Attributes>> {
        region.check()?;
        match self.writes.own(region.id, key) {
            Own::Value(_, expiry) => return Ok(Some(self.own_attributes(region, expiry))),
            Own::Deleted => return Ok(None),
            Own::Unknown => {}
        }
        self.note_read(region, key, false)?;
        self.reader.attributes(region, key, self.snapshot.point())
    }

    /// What is kept beside an own value, as if it were written at the time of the transaction.
    fn own_attributes(&self, region: &RegionState, expiry: Expiry) -> Attributes {
        Attributes::expiring(match expiry {
            Expiry::OfRegion => region.own.expires(|| self.time()),
            Expiry::Never | Expiry::At(_) => expiry.moment(),
        })
    }

    /// The time at which it reads.
    pub fn time(&self) -> Timestamp {
        self.snapshot.point().time()
    }

    /// Deletes `key`.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete(&mut self, region: &Arc<RegionState>, key: &[u8]) -> Result<()> {
        self.set(region, key, None, Expiry::OfRegion)
    }

    fn set(
        &mut self,
        region: &Arc<RegionState>,
        key: &[u8],
        value: Option<&[u8]>,
        expiry: Expiry,
    ) -> Result<()> {
        let operation = Operation {
            region,
            key,
            value,
            is_range: false,
            terms: Terms {
                expiry,
                ..Terms::default()
            },
        };
        operation.check()?;
        region.check()?;
        self.make_room(Writes::bytes_of(key, value))?;
        let write = value.map(|value| Put {
            value: value.to_vec(),
            expiry,
        });
        self.writes.set(region, key, write);
        Ok(())
    }

    /// Deletes all keys of a range. The commit fails if any key of it was changed by then, whatever the isolation.
    ///
    /// # Errors
    /// As [`put`](Self::put); `InvalidArgument` for a bound that is longer than any key.
    pub fn delete_range(&mut self, region: &Arc<RegionState>, bounds: KeyBounds) -> Result<()> {
        region.check()?;
        let Some(range) = DeletedRange::of(bounds)? else {
            return Ok(());
        };
        self.make_room(Writes::bytes_of(range.start(), Some(range.end())))?;
        self.writes.delete_range(region, range);
        Ok(())
    }

    /// A savepoint of now.
    pub fn set_savepoint(&mut self) -> Savepoint {
        Savepoint(self.writes.set_savepoint())
    }

    /// Undoes all writes since `savepoint`, which may be returned to again; later ones are gone. What was read stays
    /// read.
    ///
    /// # Errors
    /// `InvalidArgument` if the savepoint is gone.
    pub fn roll_back_to(&mut self, savepoint: Savepoint) -> Result<()> {
        match self.writes.roll_back_to(savepoint.0) {
            true => Ok(()),
            false => Err(Error::invalid(
                "the transaction has no such savepoint any more",
            )),
        }
    }

    /// Applies all writes as one unit, if nothing that counts was changed since the transaction began.
    ///
    /// # Errors
    /// `Conflict`: it was. All others of a write and of a get.
    pub fn commit(self, writer: &Writer, durability: Durability) -> Result<()> {
        if self.writes.is_empty() {
            return Ok(());
        }
        let mut unchanged = Unchanged {
            isolation: self.isolation,
            since: self.snapshot.moment().at,
            point: self.snapshot.point(),
            reads: &self.reads,
            writes: &self.writes,
            levels: self.levels.clone(),
            loads_shown: 0,
            visibility: &self.visibility,
        };
        writer.write_if(&self.writes.operations(), durability, &mut unchanged)
    }

    pub(super) fn writes(&self) -> &Writes {
        &self.writes
    }

    /// Of a range less was read than was said.
    pub(super) fn narrow(&mut self, place: RangePlace, bounds: KeyBounds) {
        self.reads.set_range(place, bounds);
    }

    fn make_room(&self, bytes: usize) -> Result<()> {
        let taken = self.reads.bytes() + self.writes.bytes();
        match taken.saturating_add(bytes) <= self.bytes_max {
            true => Ok(()),
            false => Err(Error::invalid(format!(
                "a transaction takes at most {} bytes of memory, this one has {taken}",
                self.bytes_max
            ))),
        }
    }
}
