//! The change feed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kreon_engine::{ChangeUnit, Engine, Position};

use crate::{Options, Result, Store};

/// A feed of the changes of a store: what is durable, in the order in which it was written, a unit at a time.
///
/// A *unit* is a batch, a transaction or a single write: a feed shows all of it or nothing. It is an iterator that ends at
/// the durable end of the log, and goes on there when it is asked again; [`wait`](Self::wait) blocks until there may be more.
/// [`position`](Self::position) is where a later feed goes on, in this process or in another one. A feed takes 2 MiB of
/// memory and that of one unit, and reads past the cache of the store. It holds nothing back: a feed that is slower than
/// [`changes_kept_bytes`](crate::Options::changes_kept_bytes) allows for fails with `NotFound`, and a follower begins anew.
///
/// ```
/// # fn main() -> kreon::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("store");
/// let store = kreon::Store::options().changes_kept_bytes(256 << 20).open(path)?;
/// let mut changes = store.changes(store.changes_end()?)?;
/// let cities = store.region("cities")?;
/// cities.put("gr/chania", "53910")?;
/// store.sync()?;
/// for unit in &mut changes {
///     for change in unit?.changes {
///         match change.what {
///             kreon::Changed::Put { key, value, .. } => {
///                 assert_eq!((&key[..], &value[..]), (&b"gr/chania"[..], &b"53910"[..]));
///             }
///             kreon::Changed::Made => assert_eq!(change.name.as_deref(), Some("cities")),
///             other => panic!("{other:?}"),
///         }
///     }
/// }
/// let resumed = store.changes(changes.position())?;
/// assert_eq!(resumed.count(), 0);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Of each step: `NotFound`: the log of the next unit is not kept any more, and the message names the oldest position that
/// is. `Closed`, `Corruption`, `Io`. The same unit is tried again by the next step.
#[must_use = "nothing is read until it is asked for units"]
pub struct Changes {
    feed: kreon_engine::Changes,
    /// Keeps the store open.
    _engine: Arc<Engine>,
}

impl Changes {
    /// Behind the last unit that was shown, or where the feed began. Keep it where what follows from the units is kept, in
    /// the same step.
    pub fn position(&self) -> Position {
        self.feed.position()
    }

    /// Blocks until more is durable than the feed has come to, or for `timeout`; whether there may be another unit. Makes
    /// nothing durable itself: [buffered](crate::Durability::Buffered) writes become so by a [`sync`](Store::sync), a
    /// durable write or a checkpoint. `false` at once if the store is open for reading only.
    ///
    /// # Errors
    /// `Closed`; `Poisoned`: nothing more will become durable.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool> {
        self.feed.wait(timeout)
    }
}

impl Iterator for Changes {
    type Item = Result<ChangeUnit>;

    fn next(&mut self) -> Option<Self::Item> {
        self.feed.next_unit().transpose()
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes")
            .field("position", &self.position())
            .finish_non_exhaustive()
    }
}

impl Options {
    /// Bytes of the log behind its durable end that are kept for [change feeds](Store::changes), although nothing else needs
    /// them. Default 0: no feed, and nothing is kept.
    ///
    /// The store takes at most so much more space, in whole segments of 2 MiB, and less where kept log still holds values. It
    /// is not counted by [`space_amplification`](Self::space_amplification), and writers are not slowed down for it. It counts
    /// for [`volume_bytes_max`](Self::volume_bytes_max), but no write fails because of it: a checkpoint leaves at least as much
    /// room free as kept log takes, and a write that finds no room gives the oldest of it up first. (A backup or a long scan
    /// holds on to what is given up meanwhile.) A feed that was behind that gets `NotFound`. Keep what is written while a follower may be away. An opening without this option gives up what
    /// earlier ones kept; one that is [`read_only`](Self::read_only) needs no option and shows what is there.
    ///
    /// A bulk load and the drop of a region write one more small record each, and the drop flushes it. Backups copy kept log.
    pub fn changes_kept_bytes(mut self, bytes: u64) -> Self {
        self.engine.changes_kept_bytes = bytes;
        self
    }
}

impl Store {
    /// A feed of all changes from `from` on, which comes from [`changes_start`](Self::changes_start),
    /// [`changes_end`](Self::changes_end), or another feed of this store, however often it was opened since with a feed. See
    /// [`Changes`]. Of a store that was restored or repaired no earlier position is good, though not every one is refused.
    ///
    /// A follower that begins anew takes [`changes_end`](Self::changes_end), then copies what a [`snapshot`](Self::snapshot)
    /// shows, then calls [`sync`](Self::sync), because a snapshot also shows what is not durable yet, then follows. What it applies
    /// twice gives the same in the end. The same goes for the range of a [load](crate::Changed::Loaded).
    ///
    /// # Errors
    /// `NotFound`: the log is not kept from there on any more; the message names the oldest position. `InvalidArgument`: `from`
    /// is ahead of the durable end or within a unit, or the store is open without
    /// [`changes_kept_bytes`](crate::Options::changes_kept_bytes). `Closed`, `Corruption`, `Io`.
    pub fn changes(&self, from: Position) -> Result<Changes> {
        Ok(Changes {
            feed: self.engine.changes(from)?,
            _engine: Arc::clone(&self.engine),
        })
    }

    /// The oldest position from which a feed can begin now. Reads up to a segment of the log, and once after an opening a page of
    /// each segment that was written by runs before those that the store has a record of.
    ///
    /// # Errors
    /// `InvalidArgument`: no log is kept. `Closed`, `Corruption`, `Io`.
    pub fn changes_start(&self) -> Result<Position> {
        self.engine.changes_start()
    }

    /// The position behind the last durable unit. Reads up to a segment of the log.
    ///
    /// # Errors
    /// As [`changes_start`](Self::changes_start).
    pub fn changes_end(&self) -> Result<Position> {
        self.engine.changes_end()
    }
}
