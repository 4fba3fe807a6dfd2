//! Where feeds begin.

use std::sync::{Arc, OnceLock};

use kreon_base::{Attributes, Error, ErrorKind, Lsn, RegionId, Result};
use kreon_format::RecordKind;
use kreon_log::{Borders, LOG_START, NewRecord};

use super::reader::Changes;
use super::unit::Position;
use crate::regions::Regions;
use crate::state::Storage;
use crate::versions::Versions;
use crate::visibility::Visibility;

/// Begins feeds of an open store.
pub struct ChangeSource {
    storage: Arc<Storage>,
    regions: Arc<Regions>,
    /// None: no log is kept.
    borders: OnceLock<Arc<Borders>>,
}

impl ChangeSource {
    /// Of a store that was just opened.
    pub fn new(storage: &Arc<Storage>, regions: &Arc<Regions>) -> Self {
        let (log, options) = (&storage.log, &storage.options);
        let last = match options.read_only {
            // The log may end behind what is shown.
            true => LOG_START,
            false => log.durable(),
        };
        let is_on = options.read_only || storage.feed.is_on();
        let from = log.followed_from().filter(|_| is_on);
        let borders = from.map(|from| Arc::new(Borders::new(log, from, last)));
        Self {
            storage: Arc::clone(storage),
            regions: Arc::clone(regions),
            borders: borders.map_or_else(OnceLock::new, OnceLock::from),
        }
    }

    /// Begins the feed in a log that had none so far: behind a record of its own, because a run without a feed can drop a
    /// region and write nothing to the log.
    ///
    /// # Errors
    /// Those of a write and of a checkpoint, but for `OutOfSpace`: then this run has no feed.
    pub fn begin(&self, versions: &Versions, visibility: &Visibility) -> Result<()> {
        let Storage { feed, log, .. } = self.storage.as_ref();
        if !feed.is_on() || self.borders.get().is_some() {
            return Ok(());
        }
        let notice = NewRecord {
            region: RegionId(0),
            kind: RecordKind::Followed,
            key: b"",
            value: b"",
            attributes: Attributes::NONE,
        };
        let appended = {
            let _inside = visibility.gate.enter();
            log.append_one(&notice)
        };
        let from = match appended {
            Ok((_, end)) => end,
            Err(error) if error.kind() == ErrorKind::OutOfSpace => {
                tracing::warn!(%error, "there is no room to begin a change feed");
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        log.sync(from)
            .inspect_err(|error| self.storage.poison.set(error))?;
        log.begin_following(from);
        self.borders
            .get_or_init(|| Arc::new(Borders::new(log, from, from)));
        let _changes = versions.lock_changes();
        match versions.install_ledger(|_| ()) {
            Err(error) if error.kind() == ErrorKind::OutOfSpace => Ok(()),
            outcome => outcome,
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
        match self.borders.get() {
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
