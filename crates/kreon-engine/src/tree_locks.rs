//! Locks on the trees of a region, for loads, compactions and merges. Spills take none: they go into a tree above the
//! locked ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::level::View;
use crate::ranges::RegionRanges;
use kreon_base::{Error, ErrorKind, PageNo, RegionId, Result};
use kreon_sync::{AtomicBool, Condvar, Mutex, Ordering};

/// Why all trees of a region are locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockReason {
    /// A load is under way.
    Load,
    /// A compaction makes them one tree.
    Compaction,
}

/// The tree locks of all regions.
#[derive(Default)]
pub struct TreeLocks {
    held: Mutex<BTreeMap<RegionId, Held>>,
    changed: Condvar,
}

/// The tree locks of one region.
#[derive(Default)]
struct Held {
    /// All trees are locked, for this reason.
    whole: Option<LockReason>,
    /// [`TreeLock::is_invalidated`] of the lock on all trees.
    is_whole_invalidated: Arc<AtomicBool>,
    /// Merges under way, each with a lock on some trees.
    merges: Vec<Merge>,
    /// Threads that wait for the lock on all trees: no merge begins.
    waiting: usize,
    /// The region is being dropped: merges end early.
    is_dropped: Arc<AtomicBool>,
    /// Threads that drop the region, or wait to do so.
    droppers: usize,
    /// Deleted ranges that spills applied to the trees since the load under way began.
    erased: RegionRanges,
    /// Views that keep the pages of invalidated merges from being reclaimed, until these merges have ended.
    read: Vec<Arc<View>>,
}

/// A merge of some trees.
struct Merge {
    /// The pages of their roots.
    roots: BTreeSet<PageNo>,
    is_invalidated: Arc<AtomicBool>,
}

/// A lock on trees of a region, released when dropped.
pub struct TreeLock<'a> {
    locks: &'a TreeLocks,
    region: RegionId,
    /// The roots of the trees of a merge; `None`: all trees of the region.
    roots: Option<BTreeSet<PageNo>>,
    is_dropped: Arc<AtomicBool>,
    is_invalidated: Arc<AtomicBool>,
}

/// The right to drop a region, until it is dropped itself.
pub struct Dropping<'a> {
    locks: &'a TreeLocks,
    region: RegionId,
}

/// How long a wait lasts before it asks again whether the store was closed.
const PATIENCE: Duration = Duration::from_millis(200);

impl TreeLocks {
    /// Locks all trees of `region`. Waits for merges to end while `may_wait` is `Ok`.
    ///
    /// # Errors
    /// `Busy` while a load is under way: a wait would never end if the load is this thread's.
    /// Those of `may_wait`.
    pub fn take_whole(
        &self,
        region: RegionId,
        purpose: LockReason,
        may_wait: impl Fn() -> Result<()>,
    ) -> Result<TreeLock<'_>> {
        let mut held = self.held.lock();
        held.entry(region).or_default().waiting += 1;
        let outcome = loop {
            let of_region = held.entry(region).or_default();
            match of_region.whole {
                Some(LockReason::Load) => {
                    break Err(Error::new(
                        ErrorKind::Busy,
                        "a load into this region is under way",
                    ));
                }
                None if of_region.merges.is_empty() => {
                    debug_assert!(of_region.read.is_empty(), "views of ended merges");
                    of_region.whole = Some(purpose);
                    of_region.is_whole_invalidated = Arc::default();
                    let (is_dropped, is_invalidated) =
                        (&of_region.is_dropped, &of_region.is_whole_invalidated);
                    break Ok((Arc::clone(is_dropped), Arc::clone(is_invalidated)));
                }
                _ => {}
            }
            if let Err(error) = may_wait() {
                break Err(error);
            }
            self.changed.wait_for(&mut held, PATIENCE);
        };
        let of_region = held.entry(region).or_default();
        debug_assert!(of_region.waiting > 0, "this thread waits");
        of_region.waiting -= 1;
        if outcome.is_err() {
            forget_if_free(&mut held, region);
        }
        let (is_dropped, is_invalidated) = outcome?;
        Ok(TreeLock {
            locks: self,
            region,
            roots: None,
            is_dropped,
            is_invalidated,
        })
    }

    /// Whether a load into `region` is under way.
    pub fn is_loading(&self, region: RegionId) -> bool {
        let held = self.held.lock();
        held.get(&region)
            .is_some_and(|held| held.whole == Some(LockReason::Load))
    }

    /// Locks the trees with these roots for a merge. `None` if one of them is locked, or if all are, or if a thread waits
    /// for all. Never waits.
    pub fn try_take(&self, region: RegionId, roots: BTreeSet<PageNo>) -> Option<TreeLock<'_>> {
        let mut held = self.held.lock();
        let of_region = held.entry(region).or_default();
        let is_wanted = of_region.whole.is_some()
            || of_region.waiting > 0
            || of_region.is_dropped.load(Ordering::Acquire);
        let is_taken = |merge: &Merge| !merge.roots.is_disjoint(&roots);
        if is_wanted || of_region.merges.iter().any(is_taken) {
            forget_if_free(&mut held, region);
            return None;
        }
        let is_invalidated = Arc::default();
        of_region.merges.push(Merge {
            roots: roots.clone(),
            is_invalidated: Arc::clone(&is_invalidated),
        });
        Some(TreeLock {
            locks: self,
            region,
            is_dropped: Arc::clone(&of_region.is_dropped),
            is_invalidated,
            roots: Some(roots),
        })
    }

    /// The roots of the trees that are being merged.
    pub fn merged(&self, region: RegionId) -> BTreeSet<PageNo> {
        let held = self.held.lock();
        let merges = held.get(&region).map(|of| of.merges.iter());
        let roots = merges.into_iter().flatten().flat_map(|of| &of.roots);
        roots.copied().collect()
    }

    /// A spill has applied the deleted `ranges` to the trees of `region`. It replaced the lower trees with the roots `gone`,
    /// so merges of these, which read them in `view`, are invalidated. A load under way applies the ranges at its end.
    /// The caller holds the right to change the levels, so that no merge begins meanwhile.
    pub fn erased(
        &self,
        region: RegionId,
        ranges: &RegionRanges,
        gone: &BTreeSet<PageNo>,
        view: &Arc<View>,
    ) {
        let mut held = self.held.lock();
        let Some(of_region) = held.get_mut(&region) else {
            return;
        };
        let merges = of_region.merges.iter();
        let hit = merges.filter(|merge| !merge.roots.is_disjoint(gone));
        let mut vain: Vec<_> = hit.map(|merge| &merge.is_invalidated).collect();
        if of_region.whole == Some(LockReason::Compaction) && !gone.is_empty() {
            vain.push(&of_region.is_whole_invalidated);
        }
        for is_invalidated in &vain {
            is_invalidated.store(true, Ordering::Release);
        }
        if !vain.is_empty() {
            of_region.read.push(Arc::clone(view));
        }
        if of_region.whole == Some(LockReason::Load) {
            of_region.erased = of_region.erased.and(ranges);
        }
    }

    /// Whether merges of `region` may begin.
    pub fn lets_merge(&self, region: RegionId) -> bool {
        let held = self.held.lock();
        held.get(&region)
            .is_none_or(|of| of.whole.is_none() && of.waiting == 0)
    }

    /// Makes merges of `region` end early, waits for that, and lets none begin. Loads go on.
    pub fn begin_drop(&self, region: RegionId) -> Dropping<'_> {
        let mut held = self.held.lock();
        let of_region = held.entry(region).or_default();
        of_region.is_dropped.store(true, Ordering::Release);
        of_region.droppers += 1;
        while held.get(&region).is_some_and(Held::is_merged) {
            self.changed.wait_for(&mut held, PATIENCE);
        }
        Dropping {
            locks: self,
            region,
        }
    }
}

impl Held {
    fn is_merged(&self) -> bool {
        !self.merges.is_empty() || self.whole == Some(LockReason::Compaction)
    }

    /// Drops the state that only ended merges and loads needed.
    fn tidy(&mut self) {
        if !self.is_merged() {
            self.read.clear();
        }
        if self.whole != Some(LockReason::Load) {
            self.erased = RegionRanges::default();
        }
    }
}

/// Removes the entry of a region without locks.
fn forget_if_free(held: &mut BTreeMap<RegionId, Held>, region: RegionId) {
    let is_free = |of: &Held| {
        let is_wanted = of.waiting > 0 || of.droppers > 0;
        of.whole.is_none() && of.merges.is_empty() && !is_wanted
    };
    if held.get(&region).is_some_and(is_free) {
        held.remove(&region);
    }
}

impl TreeLock<'_> {
    /// # Errors
    /// `Closed` if the region is being dropped or the merge is [invalidated](Self::is_invalidated): its result could not be
    /// installed.
    pub fn check(&self) -> Result<()> {
        self.check_region()?;
        if self.is_invalidated() {
            let text = "ranges were deleted in the trees that are being merged";
            return Err(Error::new(ErrorKind::Closed, text));
        }
        Ok(())
    }

    /// # Errors
    /// `Closed` if the region is being dropped.
    pub fn check_region(&self) -> Result<()> {
        if self.is_dropped.load(Ordering::Acquire) {
            return Err(Error::new(ErrorKind::Closed, "the region is being dropped"));
        }
        Ok(())
    }

    /// Whether a spill has changed the trees since the merge of them began: its result cannot be installed.
    pub fn is_invalidated(&self) -> bool {
        self.is_invalidated.load(Ordering::Acquire)
    }

    /// A merge begins, of the trees as they are. The caller holds the right to change the levels.
    pub fn begin_merge(&self) {
        self.is_invalidated.store(false, Ordering::Release);
        if self.roots.is_none()
            && let Some(held) = self.locks.held.lock().get_mut(&self.region)
        {
            held.read.clear();
        }
    }

    /// The tree of the load is newer than the ranges deleted so far. The caller holds the right to change the levels.
    pub fn begin_load(&self) {
        if let Some(held) = self.locks.held.lock().get_mut(&self.region) {
            held.erased = RegionRanges::default();
        }
    }

    /// Deleted ranges that spills applied to the trees of the region since the load began.
    pub fn erased_meanwhile(&self) -> RegionRanges {
        let held = self.locks.held.lock();
        held.get(&self.region)
            .map_or_else(Default::default, |held| held.erased.clone())
    }
}

impl Drop for TreeLock<'_> {
    fn drop(&mut self) {
        let mut held = self.locks.held.lock();
        if let Some(of_region) = held.get_mut(&self.region) {
            match &self.roots {
                None => {
                    debug_assert!(of_region.whole.is_some() && of_region.merges.is_empty());
                    of_region.whole = None;
                }
                Some(roots) => of_region.merges.retain(|merge| merge.roots != *roots),
            }
            of_region.tidy();
        }
        forget_if_free(&mut held, self.region);
        self.locks.changed.notify_all();
    }
}

impl Drop for Dropping<'_> {
    fn drop(&mut self) {
        let mut held = self.locks.held.lock();
        if let Some(of_region) = held.get_mut(&self.region) {
            debug_assert!(of_region.droppers > 0, "this thread drops it");
            of_region.droppers -= 1;
            let is_dropped = of_region.droppers > 0;
            of_region.is_dropped.store(is_dropped, Ordering::Release);
        }
        forget_if_free(&mut held, self.region);
    }
}

#[cfg(test)]
mod tests {
    use kreon_l0::L0;

    use super::*;
    use crate::level::{Levels, Memory, Views};

    const REGION: RegionId = RegionId(1);

    fn roots(pages: &[u64]) -> BTreeSet<PageNo> {
        pages.iter().copied().map(PageNo).collect()
    }

    #[test]
    fn a_region_has_one_load_at_a_time() {
        let holds = TreeLocks::default();
        let take = |region| holds.take_whole(region, LockReason::Load, || Ok(()));
        let first = take(REGION).unwrap();
        assert_eq!(take(REGION).err().unwrap().kind(), ErrorKind::Busy);
        assert!(take(RegionId(2)).is_ok());
        assert!(holds.try_take(REGION, roots(&[1])).is_none());
        drop(first);
        assert!(holds.try_take(REGION, roots(&[1])).is_some());
        assert!(holds.held.lock().is_empty());
    }

    #[test]
    fn a_load_waits_for_a_merge_as_long_as_it_may_and_no_other_begins() {
        let holds = TreeLocks::default();
        let merge = holds.try_take(REGION, roots(&[1, 2])).unwrap();
        let closed = || Err(Error::new(ErrorKind::Closed, "closed"));
        let refused = holds.take_whole(REGION, LockReason::Load, closed);
        assert_eq!(refused.err().unwrap().kind(), ErrorKind::Closed);
        std::thread::scope(|scope| {
            let load = scope.spawn(|| {
                let taken = holds.take_whole(REGION, LockReason::Load, || Ok(()));
                taken.is_ok()
            });
            while holds.lets_merge(REGION) {
                std::thread::yield_now();
            }
            assert!(holds.try_take(REGION, roots(&[7])).is_none());
            drop(merge);
            assert!(load.join().unwrap());
        });
    }

    #[test]
    fn merges_of_one_region_run_side_by_side_on_different_trees() {
        let holds = TreeLocks::default();
        let first = holds.try_take(REGION, roots(&[1, 2])).unwrap();
        assert!(holds.try_take(REGION, roots(&[2, 3])).is_none());
        let second = holds.try_take(REGION, roots(&[3, 4])).unwrap();
        assert_eq!(holds.merged(REGION), roots(&[1, 2, 3, 4]));
        drop(first);
        assert_eq!(holds.merged(REGION), roots(&[3, 4]));
        drop(second);
    }

    #[test]
    fn who_takes_ranges_out_of_a_tree_ends_its_merge_and_no_other() {
        let holds = TreeLocks::default();
        let views = Views::new(
            Arc::new(Memory::new(L0::new())),
            Arc::new(Levels::default()),
        );
        let first = holds.try_take(REGION, roots(&[1, 2])).unwrap();
        let second = holds.try_take(REGION, roots(&[3, 4])).unwrap();
        let erase = |pages: &[u64]| {
            let view = views.load_full();
            holds.erased(REGION, &RegionRanges::default(), &roots(pages), &view);
            Arc::downgrade(&view)
        };
        assert_eq!(erase(&[]).strong_count(), 1);
        let held = erase(&[2, 7]);
        assert!(first.is_invalidated() && first.check().is_err() && second.check().is_ok());
        assert_eq!(held.strong_count(), 2);
        drop((first, second));
        assert_eq!(held.strong_count(), 1);
        let whole = holds
            .take_whole(REGION, LockReason::Compaction, || Ok(()))
            .unwrap();
        drop(erase(&[5]));
        assert!(whole.check().is_err());
        whole.begin_merge();
        assert!(whole.check().is_ok());
        assert_eq!(held.strong_count(), 1);
    }

    #[test]
    fn who_drops_a_region_ends_its_merges() {
        let holds = TreeLocks::default();
        let merge = holds.try_take(REGION, roots(&[1])).unwrap();
        merge.check().unwrap();
        std::thread::scope(|scope| {
            let dropping = scope.spawn(|| drop(holds.begin_drop(REGION)));
            while merge.check().is_ok() {
                std::thread::yield_now();
            }
            assert!(holds.try_take(REGION, roots(&[2])).is_none());
            drop(merge);
            dropping.join().unwrap();
        });
        // Of two one may fail: no merge begins before the other has ended, too.
        let (first, second) = (holds.begin_drop(REGION), holds.begin_drop(REGION));
        drop(first);
        assert!(holds.try_take(REGION, roots(&[2])).is_none());
        drop(second);
        assert!(holds.try_take(REGION, roots(&[2])).is_some());
    }
}
