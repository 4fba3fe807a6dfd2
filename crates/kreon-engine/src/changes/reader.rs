//! A feed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use kreon_base::{Error, ErrorKind, Lsn, RegionId, Result, Timestamp};
use kreon_format::{RecordKind, range_end};
use kreon_log::{Borders, LogFeed, Own, ReplayRecord, not_kept};

use super::unit::{Change, ChangeUnit, Changed, Position};
use crate::compression;
use crate::regions::Regions;
use crate::state::Storage;

/// The durable units of a store in the order of the log, each once and whole.
///
/// It takes 2 MiB of memory, and that of one unit. It keeps nothing from being given up, and waits for nobody.
pub struct Changes {
    storage: Arc<Storage>,
    regions: Arc<Regions>,
    borders: Arc<Borders>,
    feed: LogFeed,
    /// Names of regions whose making or drop it has seen.
    made: BTreeMap<RegionId, Arc<str>>,
    /// Up to here all was looked at.
    seen: Lsn,
}

impl Changes {
    pub(super) fn new(
        (storage, regions): (&Arc<Storage>, &Arc<Regions>),
        borders: &Arc<Borders>,
        feed: LogFeed,
    ) -> Self {
        Self {
            storage: Arc::clone(storage),
            regions: Arc::clone(regions),
            borders: Arc::clone(borders),
            feed,
            made: BTreeMap::new(),
            seen: Lsn(0),
        }
    }

    /// Behind the last unit that was shown, or where it began.
    pub fn position(&self) -> Position {
        Position::of(self.feed.position())
    }

    /// The next durable unit; `None`: there is none yet. After an error the same unit is next.
    ///
    /// # Errors
    /// `NotFound`: its log is not kept any more. `Closed`, `Corruption`, `Io`.
    pub fn next_unit(&mut self) -> Result<Option<ChangeUnit>> {
        loop {
            self.storage.check_open()?;
            let until = self.storage.feed_until();
            let mut gathered = Gathered::default();
            let read = self.feed.next(until, &mut |record| gathered.add(record));
            if !read.map_err(|error| self.behind(error))? {
                self.seen = until;
                return Ok(None);
            }
            let changes = self.shown(gathered);
            // Values of loads alone, the mark of a load's beginning, or the notice of a drop that failed.
            if !changes.is_empty() {
                let end = self.position();
                return Ok(Some(ChangeUnit { end, changes }));
            }
        }
    }

    /// Blocks until more of the log is durable than the last [`next_unit`](Self::next_unit) found, or for `timeout`; whether more is. It
    /// flushes nothing: buffered writes become durable when somebody asks for that.
    ///
    /// # Errors
    /// `Closed`; `Poisoned`: nothing more will be durable.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool> {
        let end = Instant::now().checked_add(timeout);
        loop {
            let told = self.storage.log.told();
            self.storage.check_open()?;
            if self.storage.feed_until() > self.seen {
                return Ok(true);
            }
            if self.storage.options.read_only {
                return Ok(false);
            }
            self.storage.check_writable()?;
            let left = end.map_or(Duration::MAX, |end| {
                end.saturating_duration_since(Instant::now())
            });
            if left.is_zero() {
                return Ok(false);
            }
            self.storage.log.wait_until_told(told, left.min(PATIENCE));
        }
    }

    /// What was gathered, with names of regions.
    fn shown(&mut self, gathered: Gathered) -> Vec<Change> {
        let mut changes = Vec::with_capacity(gathered.0.len());
        for (region, record) in gathered.0 {
            let what = match record {
                Record::Change(what) => what,
                Record::Make(name) => {
                    self.made.insert(region, name.into());
                    Changed::Made
                }
                Record::Drop(_) if self.regions.of(region).is_some() => {
                    // The drop failed.
                    continue;
                }
                Record::Drop(name) => {
                    self.made.insert(region, name.into());
                    Changed::Dropped
                }
            };
            changes.push((region, what));
        }
        let named = changes.into_iter().map(|(region, what)| Change {
            region: region.0,
            name: self.name_of(region),
            what,
        });
        named.collect()
    }

    fn name_of(&self, region: RegionId) -> Option<Arc<str>> {
        let made = self.made.get(&region).cloned();
        made.or_else(|| Some(Arc::clone(&self.regions.of(region)?.name)))
    }

    /// Says where a feed could begin, if this one fell behind.
    fn behind(&self, error: Error) -> Error {
        match error.kind() {
            ErrorKind::NotFound => {
                let first = self.borders.first(self.storage.feed_until());
                first.map_or(error, |first| not_kept(self.feed.position(), first))
            }
            _ => error,
        }
    }
}

impl std::fmt::Debug for Changes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Changes")
            .field("position", &self.position())
            .finish_non_exhaustive()
    }
}

fn moment(expires: Timestamp) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(expires.ms())
}

/// How long a thread that waits goes without a look at whether the store still writes.
const PATIENCE: Duration = Duration::from_secs(1);

/// The records of a unit that tell of a change.
#[derive(Default)]
struct Gathered(Vec<(RegionId, Record)>);

enum Record {
    Change(Changed),
    /// The region with this name is made.
    Make(String),
    /// The region with this name was about to be dropped.
    Drop(String),
}

impl Gathered {
    fn add(&mut self, record: ReplayRecord<'_>) -> Result<()> {
        let (key, value) = (record.key.to_vec(), record.value.unwrap_or_default());
        let name = || String::from_utf8_lossy(record.key).into_owned();
        let found = match record.kind {
            RecordKind::Put => Record::Change(Changed::Put {
                key,
                value: compression::show(record.attributes.codec(), value, Own)?,
                expires: record.attributes.expires().map(moment),
            }),
            RecordKind::Delete => Record::Change(Changed::Delete { key }),
            RecordKind::DeleteRange => Record::Change(Changed::DeleteRange {
                start: key,
                end: range_end(value)?.map(<[u8]>::to_vec),
            }),
            RecordKind::Loaded => Record::Change(Changed::Loaded {
                first: key,
                last: value.to_vec(),
            }),
            RecordKind::MakeRegion => Record::Make(name()),
            RecordKind::DropRegion => Record::Drop(name()),
            RecordKind::Ingested | RecordKind::Relocation | RecordKind::Followed => return Ok(()),
        };
        self.0.push((record.region, found));
        Ok(())
    }
}
