//! What is durable: no reply tells of what a crash can take back.
//!
//! Time is cut into epochs by syncs of the store. A write marks the stripes of its keys before it is applied, and with the current
//! epoch afterwards. A sync ends the epoch first: what was applied in it lies before the sync in the log. A reader looks at the mark
//! after it has read: had it seen a write, it sees its mark or a later one.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use kreon::Store;

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
    /// With `is_awaited` unset nothing is marked, and [`wait`](Self::wait) ends at once.
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

    /// Completes when `epoch` is durable. All that wait at a time share a flush of the device: the store sees to that.
    ///
    /// # Errors
    /// As [`Store::sync_async`].
    pub(crate) async fn wait(&self, store: &Store, epoch: Epoch) -> kreon::Result<()> {
        if self.is_durable(epoch) {
            return Ok(());
        }
        let ended = self.current.fetch_add(1, SeqCst);
        store.sync_async().await?;
        self.durable.fetch_max(ended, SeqCst);
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
        store.drive(epochs.wait(&store, written)).unwrap();
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
