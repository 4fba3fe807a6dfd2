//! Who builds on the lower trees of which region. What is spilled meanwhile goes into a tree above them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::level::View;
use crate::ranges::RegionRanges;
use crate::sync::{AtomicBool, Condvar, Mutex, Ordering};
use kreon_base::{Error, ErrorKind, PageNo, RegionId, Result};

/// Why all trees of a region are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A load is under way.
    Load,
    /// All of them are made one.
    Compaction,
}

/// The regions that are held.
#[derive(Default)]
pub struct Holds {
    held: Mutex<BTreeMap<RegionId, Held>>,
    changed: Condvar,
}

/// What is held of a region.
#[derive(Default)]
struct Held {
    /// All of it.
    whole: Option<Purpose>,
    /// See [`Hold::is_vain`]: that of who has all of it.
    is_whole_vain: Arc<AtomicBool>,
    /// Some of its trees.
    merges: Vec<Merge>,
    /// Who waits for all of it: no merge begins.
    waiting: usize,
    /// The region is being dropped: merges end early.
    is_dropped: Arc<AtomicBool>,
    /// Who drops it, or tries to.
    droppers: usize,
    /// What spills have taken out of the trees since the load that is under way began.
    erased: RegionRanges,
    /// Views with the trees of merges that spills took ranges out of meanwhile: until a merge of such a tree has
    /// noticed, its pages are not handed out again.
    read: Vec<Arc<View>>,
}

/// Some trees that are being made one.
struct Merge {
    /// The pages of their roots.
    roots: BTreeSet<PageNo>,
    is_vain: Arc<AtomicBool>,
}

/// The right to build on trees of a region, until it is dropped.
pub struct Hold<'a> {
    holds: &'a Holds,
    region: RegionId,
    /// Of a merge; none: all of them.
    roots: Option<BTreeSet<PageNo>>,
    is_dropped: Arc<AtomicBool>,
    is_vain: Arc<AtomicBool>,
}

/// The right to drop a region, until it is dropped itself.
pub struct Dropping<'a> {
    holds: &'a Holds,
    region: RegionId,
}

/// For what nobody tells: that the store was closed meanwhile.
const PATIENCE: Duration = Duration::from_millis(200);

impl Holds {
    /// Takes all trees of `region`. Waits for merges to end, as long as `may_wait`.
    ///
    /// # Errors
    /// `Busy` while a load is under way: to wait for it could be for ever, if it is this thread's.
    /// Those of `may_wait`.
    pub fn take_whole(
        &self,
        region: RegionId,
        purpose: Purpose,
        may_wait: impl Fn() -> Result<()>,
    ) -> Result<Hold<'_>> {
        let mut held = self.held.lock();
        held.entry(region).or_default().waiting += 1;
        let outcome = loop {
            let of_region = held.entry(region).or_default();
            match of_region.whole {
                Some(Purpose::Load) => {
                    break Err(Error::new(
                        ErrorKind::Busy,
                        "a load into this region is under way",
                    ));
                }
                None if of_region.merges.is_empty() => {
                    of_region.whole = Some(purpose);
                    of_region.is_whole_vain = Arc::default();
                    let (is_dropped, is_vain) = (&of_region.is_dropped, &of_region.is_whole_vain);
                    break Ok((Arc::clone(is_dropped), Arc::clone(is_vain)));
                }
                _ => {}
            }
            if let Err(error) = may_wait() {
                break Err(error);
            }
            self.changed.wait_for(&mut held, PATIENCE);
        };
        held.entry(region).or_default().waiting -= 1;
        if outcome.is_err() {
            forget_if_free(&mut held, region);
        }
        let (is_dropped, is_vain) = outcome?;
        Ok(Hold {
            holds: self,
            region,
            roots: None,
            is_dropped,
            is_vain,
        })
    }

    /// Whether a load into `region` is under way.
    pub fn is_loading(&self, region: RegionId) -> bool {
        let held = self.held.lock();
        held.get(&region)
            .is_some_and(|held| held.whole == Some(Purpose::Load))
    }

    /// Takes the trees with these roots for a merge, unless somebody has one of them, or has or wants all.
    pub fn try_take(&self, region: RegionId, roots: BTreeSet<PageNo>) -> Option<Hold<'_>> {
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
        let is_vain = Arc::default();
        of_region.merges.push(Merge {
            roots: roots.clone(),
            is_vain: Arc::clone(&is_vain),
        });
        Some(Hold {
            holds: self,
            region,
            is_dropped: Arc::clone(&of_region.is_dropped),
            is_vain,
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

    /// A spill has taken `ranges` out of the trees of `region`. Of those that it does not fill those with the roots
    /// `gone` changed: merges of them, which read them in `view`, are in vain and end early. What is being loaded
    /// loses the ranges, too. The caller holds `upkeep`: no merge begins meanwhile.
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
        let mut vain: Vec<_> = hit.map(|merge| &merge.is_vain).collect();
        if of_region.whole == Some(Purpose::Compaction) && !gone.is_empty() {
            vain.push(&of_region.is_whole_vain);
        }
        for is_vain in &vain {
            is_vain.store(true, Ordering::Release);
        }
        if !vain.is_empty() {
            of_region.read.push(Arc::clone(view));
        }
        if of_region.whole == Some(Purpose::Load) {
            of_region.erased = of_region.erased.and(ranges);
        }
    }

    /// Whether merges of `region` may begin.
    pub fn lets_merge(&self, region: RegionId) -> bool {
        let held = self.held.lock();
        held.get(&region)
            .is_none_or(|of| of.whole.is_none() && of.waiting == 0)
    }

    /// Has merges of `region` end early, waits for that, and lets none begin. A load does not mind.
    pub fn begin_drop(&self, region: RegionId) -> Dropping<'_> {
        let mut held = self.held.lock();
        let of_region = held.entry(region).or_default();
        of_region.is_dropped.store(true, Ordering::Release);
        of_region.droppers += 1;
        while held.get(&region).is_some_and(Held::is_merged) {
            self.changed.wait_for(&mut held, PATIENCE);
        }
        Dropping {
            holds: self,
            region,
        }
    }
}

impl Held {
    fn is_merged(&self) -> bool {
        !self.merges.is_empty() || self.whole == Some(Purpose::Compaction)
    }

    /// Forgets what those who have ended needed.
    fn tidy(&mut self) {
        if !self.is_merged() {
            self.read.clear();
        }
        if self.whole != Some(Purpose::Load) {
            self.erased = RegionRanges::default();
        }
    }
}

/// A region that nobody holds takes no room.
fn forget_if_free(held: &mut BTreeMap<RegionId, Held>, region: RegionId) {
    let is_free = |of: &Held| {
        let is_wanted = of.waiting > 0 || of.droppers > 0;
        of.whole.is_none() && of.merges.is_empty() && !is_wanted
    };
    if held.get(&region).is_some_and(is_free) {
        held.remove(&region);
    }
}

impl Hold<'_> {
    /// # Errors
    /// `Closed` if the region is being dropped or the merge [is in vain](Self::is_vain): what is built is for nobody.
    pub fn check(&self) -> Result<()> {
        self.check_region()?;
        if self.is_vain() {
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

    /// Whether a spill has taken ranges out of the trees since the merge of them began.
    pub fn is_vain(&self) -> bool {
        self.is_vain.load(Ordering::Acquire)
    }

    /// A merge begins, of the trees as they are. The caller holds `upkeep`.
    pub fn begin_merge(&self) {
        self.is_vain.store(false, Ordering::Release);
        if self.roots.is_none()
            && let Some(held) = self.holds.held.lock().get_mut(&self.region)
        {
            held.read.clear();
        }
    }

    /// What the load puts together from here on is newer than what was erased so far. The caller holds `upkeep`.
    pub fn begin_load(&self) {
        if let Some(held) = self.holds.held.lock().get_mut(&self.region) {
            held.erased = RegionRanges::default();
        }
    }

    /// What spills have taken out of the trees of the region since the load began.
    pub fn erased_meanwhile(&self) -> RegionRanges {
        let held = self.holds.held.lock();
        held.get(&self.region)
            .map_or_else(Default::default, |held| held.erased.clone())
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        let mut held = self.holds.held.lock();
        if let Some(of_region) = held.get_mut(&self.region) {
            match &self.roots {
                None => of_region.whole = None,
                Some(roots) => of_region.merges.retain(|merge| merge.roots != *roots),
            }
            of_region.tidy();
        }
        forget_if_free(&mut held, self.region);
        self.holds.changed.notify_all();
    }
}

impl Drop for Dropping<'_> {
    fn drop(&mut self) {
        let mut held = self.holds.held.lock();
        if let Some(of_region) = held.get_mut(&self.region) {
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
        let holds = Holds::default();
        let take = |region| holds.take_whole(region, Purpose::Load, || Ok(()));
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
        let holds = Holds::default();
        let merge = holds.try_take(REGION, roots(&[1, 2])).unwrap();
        let closed = || Err(Error::new(ErrorKind::Closed, "closed"));
        let refused = holds.take_whole(REGION, Purpose::Load, closed);
        assert_eq!(refused.err().unwrap().kind(), ErrorKind::Closed);
        std::thread::scope(|scope| {
            let load = scope.spawn(|| {
                let taken = holds.take_whole(REGION, Purpose::Load, || Ok(()));
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
        let holds = Holds::default();
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
        let holds = Holds::default();
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
        assert!(first.is_vain() && first.check().is_err() && second.check().is_ok());
        assert_eq!(held.strong_count(), 2);
        drop((first, second));
        assert_eq!(held.strong_count(), 1);
        let whole = holds
            .take_whole(REGION, Purpose::Compaction, || Ok(()))
            .unwrap();
        drop(erase(&[5]));
        assert!(whole.check().is_err());
        whole.begin_merge();
        assert!(whole.check().is_ok());
        assert_eq!(held.strong_count(), 1);
    }

    #[test]
    fn who_drops_a_region_ends_its_merges() {
        let holds = Holds::default();
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
