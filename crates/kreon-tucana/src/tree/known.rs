//! Keys that a change needs and that are not in memory: read before the latches are taken again.
//!
//! They are kept for the change, not looked for in memory again: frames may be taken for something else at any moment, and
//! long records are not kept in frames as a whole. A place tells which record is meant only as long as the generation is held in
//! which a leaf points there: later the log may use the place again.

use kreon_base::Result;

use crate::format::Location;
use crate::log::RecordLog;

/// The keys of records that were read for a change.
#[derive(Default)]
pub(crate) struct KnownKeys(Vec<(Location, Box<[u8]>)>);

impl KnownKeys {
    /// Lends the key of the record at `location` to `use_key`, without waiting. `None`: it must be [read](Self::read) first.
    #[inline]
    pub(crate) fn with<L: RecordLog, R>(
        &self,
        log: &L,
        location: Location,
        use_key: impl FnOnce(&[u8]) -> R,
    ) -> Option<R> {
        match self.0.iter().find(|(known, _)| *known == location) {
            Some((_, key)) => Some(use_key(key)),
            None => log.read_resident(location, |record| use_key(record.key)),
        }
    }

    /// Reads the key of a record. May wait for the device; the caller holds no latch.
    ///
    /// # Errors
    /// Those of the log.
    pub(crate) fn read<L: RecordLog>(&mut self, log: &L, location: Location) -> Result<()> {
        let key = log.read(location, |record| Box::<[u8]>::from(record.key))?;
        self.0.push((location, key));
        Ok(())
    }
}
