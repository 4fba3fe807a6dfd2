//! Where feeds begin.

use std::sync::Arc;

use kreon_base::{Error, Lsn, Result};
use kreon_log::{Borders, LOG_START};

use super::reader::Changes;
use super::unit::Position;
use crate::regions::Regions;
use crate::state::Storage;

/// Begins feeds of an open store.
pub struct ChangeSource {
    storage: Arc<Storage>,
    regions: Arc<Regions>,
    /// None: no log is kept.
    borders: Option<Arc<Borders>>,
}

impl ChangeSource {
    /// Of a store that was just opened.
    pub fn new(storage: &Arc<Storage>, regions: &Arc<Regions>) -> Self {
        let log = &storage.log;
        let (from, last) = match storage.options.read_only {
            // The log may end behind what is shown.
            true => (log.was_followed_from(), LOG_START),
            false => {
                let from = storage.feed.is_on().then(|| log.followed_from());
                (from, log.durable())
            }
        };
        Self {
            storage: Arc::clone(storage),
            regions: Arc::clone(regions),
            borders: from.map(|from| Arc::new(Borders::new(log, from, last))),
        }
    }

    /// The oldest position that is kept.
    ///
    /// # Errors
    /// `InvalidArgument`: there is no feed. `Closed`, `Corruption`, `Io`.
    pub fn start(&self) -> Result<Position> {
        let (borders, until) = self.check()?;
        borders.first(until).map(Position::of)
    }

    /// The position behind the last durable unit.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn end(&self) -> Result<Position> {
        let (borders, until) = self.check()?;
        borders.last_before(until).map(Position::of)
    }

    /// A feed of all durable units from `from` on.
    ///
    /// # Errors
    /// `NotFound`: the log is not kept from there on any more. `InvalidArgument`: it is a position of no unit, or lies ahead
    /// of the durable end; there is no feed. `Closed`, `Corruption`, `Io`.
    pub fn open(&self, from: Position) -> Result<Changes> {
        let (borders, until) = self.check()?;
        let feed = borders.feed(from.lsn(), until)?;
        let on = (&self.storage, &self.regions);
        Ok(Changes::new(on, borders, feed))
    }

    /// The borders of the log, and up to where a feed shows it.
    fn check(&self) -> Result<(&Arc<Borders>, Lsn)> {
        let storage = &self.storage;
        storage.check_open()?;
        match &self.borders {
            Some(borders) => Ok((borders, storage.feed_until())),
            None if storage.options.read_only => Err(Error::invalid(
                "no log is kept for a change feed; the writer did not open the store with changes_kept_bytes",
            )),
            None => Err(Error::invalid(
                "no log is kept for a change feed; open the store with changes_kept_bytes",
            )),
        }
    }
}
