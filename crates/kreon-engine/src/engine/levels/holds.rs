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
    /// Some of its trees, by the pages of their roots: each a merge.
    merges: Vec<BTreeSet<PageNo>>,
    /// Who waits for all of it: no merge begins.
    waiting: usize,
    /// The region is being dropped: merges end early.
    is_dropped: Arc<AtomicBool>,
    /// What spills have taken out of the trees since the load that is under way began.
    erased: RegionRanges,
    /// Views with the trees of merges that spills took ranges out of meanwhile: as long as a merge reads such a
    /// tree, its pages are not handed out again.
    read: Vec<Arc<View>>,
}

/// The right to build on trees of a region, until it is dropped.
pub struct Hold<'a> {
    holds: &'a Holds,
    region: RegionId,
    /// Of a merge; none: all of them.
    roots: Option<BTreeSet<PageNo>>,
    is_dropped: Arc<AtomicBool>,
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
                    break Ok(Arc::clone(&of_region.is_dropped));
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
        Ok(Hold {
            holds: self,
            region,
            roots: None,
            is_dropped: outcome?,
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
        if is_wanted || of_region.merges.iter().any(|of| !of.is_disjoint(&roots)) {
            forget_if_free(&mut held, region);
            return None;
        }
        of_region.merges.push(roots.clone());
        Some(Hold {
            holds: self,
            region,
            is_dropped: Arc::clone(&of_region.is_dropped),
            roots: Some(roots),
        })
    }

    /// The roots of the trees that are being merged.
    pub fn merged(&self, region: RegionId) -> BTreeSet<PageNo> {
        let held = self.held.lock();
        let merges = held.get(&region).map(|of| of.merges.iter());
        merges.into_iter().flatten().flatten().copied().collect()
    }

    /// A spill has taken `ranges` out of the trees of `region`, which merges may read in `view` until they end. What
    /// is being loaded loses them, too. The caller holds `upkeep`: no merge begins meanwhile.
    pub fn erased(&self, region: RegionId, ranges: &RegionRanges, view: &Arc<View>) {
        let mut held = self.held.lock();
        let Some(of_region) = held.get_mut(&region) else {
            return;
        };
        if of_region.is_merged() {
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
        let is_dropped = of.is_dropped.load(Ordering::Acquire);
        of.whole.is_none() && of.merges.is_empty() && of.waiting == 0 && !is_dropped
    };
    if held.get(&region).is_some_and(is_free) {
        held.remove(&region);
    }
}

impl Hold<'_> {
    /// # Errors
    /// `Closed` if the region is being dropped: what is built is for nobody.
    pub fn check(&self) -> Result<()> {
        if self.is_dropped.load(Ordering::Acquire) {
            return Err(Error::new(ErrorKind::Closed, "the region is being dropped"));
        }
        Ok(())
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
                Some(roots) => of_region.merges.retain(|merge| merge != roots),
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
        if let Some(of_region) = held.get(&self.region) {
            of_region.is_dropped.store(false, Ordering::Release);
        }
        forget_if_free(&mut held, self.region);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(holds.try_take(REGION, roots(&[2])).is_some());
    }
}
