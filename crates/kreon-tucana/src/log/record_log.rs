//! What the tree needs of a log.

use kreon_base::{Lsn, RegionId, Result};
use kreon_mapping::Fetched;

use crate::format::Location;

/// A record: what a write says of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The region of the key.
    pub region: RegionId,
    /// The key.
    pub key: &'a [u8],
    /// Its value; `None`: the key is deleted.
    pub value: Option<&'a [u8]>,
}

/// A record that was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Its order among all records.
    pub lsn: Lsn,
    /// Where it is.
    pub location: Location,
}

/// A log of records. A record never changes, and can be read from the moment when its append returns.
pub trait RecordLog: Send + Sync {
    /// Makes room for a record, so that an append of it does not have to wait. May wait for the device.
    ///
    /// # Errors
    /// `InvalidArgument` for a record that is too long, `OutOfSpace`, those of the device.
    fn make_room(&self, record: &Record<'_>) -> Result<()>;

    /// Appends a record; never waits for the device. `None`: others have taken the room that was made.
    ///
    /// # Errors
    /// `InvalidArgument` for a record that is too long; `Poisoned`.
    fn append(&self, record: &Record<'_>) -> Result<Option<Placed>>;

    /// Lends the record at `location` to `use_record`. May wait for the device.
    ///
    /// # Errors
    /// `Corruption` if no record is there; those of the device.
    fn read<R>(&self, location: Location, use_record: impl FnOnce(Record<'_>) -> R) -> Result<R>;

    /// The same if the record is in memory; never waits. `None` if it is not, or damaged: [`read`](Self::read) tells.
    fn read_resident<R>(
        &self,
        location: Location,
        use_record: impl FnOnce(Record<'_>) -> R,
    ) -> Option<R>;

    /// Reads those of the records that are not in memory, all at once: they are in memory then, or in `into`, which loses what it
    /// had. What cannot be read is left to the read that needs it.
    fn fetch(&self, locations: impl Iterator<Item = Location>, into: &mut Fetched);

    /// Lends a record that is in `fetched` to `use_record`; `None` if it is not, or damaged.
    fn read_fetched<R>(
        &self,
        location: Location,
        fetched: &Fetched,
        use_record: impl FnOnce(Record<'_>) -> R,
    ) -> Option<R>;

    /// The LSN of the record at `location`, without a look at the record.
    fn lsn(&self, location: Location) -> Lsn;
}
