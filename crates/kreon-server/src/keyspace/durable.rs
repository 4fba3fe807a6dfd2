//! What is durable: no reply tells of what a crash can take back.
//!
//! Time is cut into epochs by syncs of the store. A write marks the stripes of its keys before it is applied, and with the current
//! epoch afterwards. A sync ends the epoch first: what was applied in it lies before the sync in the log. A reader looks at the mark
//! after it has read: had it seen a write, it sees its mark or a later one.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use kreon::Store;
use tokio::sync::Notify;
use tokio::task::yield_now;

use super::locks::{STRIPES, Stripes};

/// A stretch of the time between two syncs of the store, counted from 1; 0 is durable from the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Epoch(u64);

/// The mark of a stripe that a write is being applied to.
const PENDING: u64 = u64::MAX;

/// Epochs, and the marks of stripes.
#[derive(Debug)]
pub(crate) struct Epochs {
    /// Empty: nobody waits for syncs.
    marks: Box<[AtomicU64]>,
    current: AtomicU64,
    durable: AtomicU64,
}

impl Epochs {
    /// With `is_awaited` unset nothing is marked, and [`SyncGroup::wait`] ends at once.
    pub(crate) fn new(is_awaited: bool) -> Self {
        let marks = if is_awaited { STRIPES } else { 0 };
        Self {
            marks: (0..marks).map(|_| AtomicU64::new(0)).collect(),
            current: AtomicU64::new(1),
            durable: AtomicU64::new(0),
        }
    }

    fn marks(&self, stripes: &Stripes) -> impl Iterator<Item = &AtomicU64> {
        let stripes = (!self.marks.is_empty()).then(|| stripes.iter());
        let stripes = stripes.into_iter().flatten();
        stripes.filter_map(|stripe| self.marks.get(usize::from(stripe)))
    }

    /// Applies a write to keys of `stripes`, which the caller has locked alone.
    pub(crate) fn write<R>(&self, stripes: &Stripes, apply: impl FnOnce() -> R) -> (R, Epoch) {
        if self.marks.is_empty() {
            return (apply(), Epoch(0));
        }
        for mark in self.marks(stripes) {
            mark.store(PENDING, SeqCst);
        }
        let outcome = apply();
        let epoch = self.current.load(SeqCst);
        for mark in self.marks(stripes) {
            mark.store(epoch, SeqCst);
        }
        (outcome, Epoch(epoch))
    }

    /// What a read of keys of `stripes` rests on; asked after the read.
    pub(crate) fn seen(&self, stripes: &Stripes) -> Epoch {
        let marks = self.marks(stripes).map(|mark| match mark.load(SeqCst) {
            // Applied or not: a sync from now on covers what was read.
            PENDING => self.current.load(SeqCst),
            epoch => epoch,
        });
        Epoch(marks.max().unwrap_or(0))
    }

    /// What a read of any keys rests on; asked after the read.
    pub(crate) fn all_seen(&self) -> Epoch {
        match self.marks.is_empty() {
            true => Epoch(0),
            false => Epoch(self.current.load(SeqCst)),
        }
    }

    /// Whether it is durable.
    pub(crate) fn is_durable(&self, epoch: Epoch) -> bool {
        self.durable.load(SeqCst) >= epoch.0
    }

    /// Makes durable what was applied before.
    ///
    /// # Errors
    /// As [`Store::sync_async`].
    async fn sync(&self, store: &Store) -> kreon::Result<()> {
        let ended = self.current.fetch_add(1, SeqCst);
        store.sync_async().await?;
        self.durable.fetch_max(ended, SeqCst);
        Ok(())
    }
}

/// The connections of one thread that wait for durability. One of them syncs for all; those that come meanwhile share the
/// next sync. Threads share flushes of the device: the store sees to that.
#[derive(Debug, Default)]
pub(crate) struct SyncGroup {
    is_syncing: Cell<bool>,
    ended: Notify,
}

/// A sync that is under way, until it is dropped.
struct Turn<'a>(&'a SyncGroup);

impl<'a> Turn<'a> {
    fn begin(group: &'a SyncGroup) -> Self {
        group.is_syncing.set(true);
        Self(group)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.is_syncing.set(false);
        self.0.ended.notify_waiters();
    }
}

impl SyncGroup {
    /// Completes when `epoch` is durable.
    ///
    /// # Errors
    /// As [`Store::sync_async`].
    pub(crate) async fn wait(
        &self,
        epochs: &Epochs,
        store: &Store,
        epoch: Epoch,
    ) -> kreon::Result<()> {
        while !epochs.is_durable(epoch) {
            if self.is_syncing.get() {
                self.ended.notified().await;
                continue;
            }
            let _turn = Turn::begin(self);
            // Connections that are ready, too, write first and wait for this sync.
            yield_now().await;
            epochs.sync(store).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reader_waits_for_the_writes_of_its_stripes_alone() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("store")).unwrap();
        let epochs = Epochs::new(true);
        let [one, other] = [1, 2].map(Stripes::One);
        let ((), written) = epochs.write(&one, || {
            assert!(
                !epochs.is_durable(epochs.seen(&one)),
                "a write under way may be seen"
            );
        });
        assert_eq!(epochs.seen(&one), written);
        assert!(epochs.is_durable(epochs.seen(&other)));
        assert!(!epochs.is_durable(epochs.all_seen()));
        let group = SyncGroup::default();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let wait = group.wait(&epochs, &store, written);
        runtime.block_on(wait).unwrap();
        assert!(epochs.is_durable(epochs.seen(&one)));
        let ((), later) = epochs.write(&one, || ());
        assert!(later > written && !epochs.is_durable(later));
    }

    #[test]
    fn nobody_waits_without_marks() {
        let epochs = Epochs::new(false);
        let ((), epoch) = epochs.write(&Stripes::One(1), || ());
        assert!(epochs.is_durable(epoch) && epochs.is_durable(epochs.all_seen()));
        assert!(epochs.is_durable(epochs.seen(&Stripes::All)));
    }
}
