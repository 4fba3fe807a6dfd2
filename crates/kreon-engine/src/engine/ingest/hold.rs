//! Who builds on the lower trees of which region. What is spilled meanwhile goes into a tree above them.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::sync::{Condvar, Mutex};
use kreon_base::{Error, ErrorKind, RegionId, Result};

/// Why a region is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A load is under way.
    Load,
    /// Its trees are made one.
    Fold,
}

/// The regions that are held.
#[derive(Default)]
pub struct Holds {
    held: Mutex<BTreeMap<RegionId, Purpose>>,
    changed: Condvar,
}

/// The right to build on the trees of a region, until it is dropped.
pub struct Hold<'a> {
    holds: &'a Holds,
    region: RegionId,
}

impl Holds {
    /// Takes `region` for a load. Waits for a fold to end, as long as `may_wait`.
    ///
    /// # Errors
    /// `Busy` while another load is under way: to wait for it could be for ever, if it is this thread's.
    /// Those of `may_wait`.
    pub fn take_for_load(
        &self,
        region: RegionId,
        may_wait: impl Fn() -> Result<()>,
    ) -> Result<Hold<'_>> {
        let mut held = self.held.lock();
        loop {
            may_wait()?;
            match held.get(&region) {
                None => break,
                Some(Purpose::Load) => {
                    return Err(Error::new(
                        ErrorKind::Busy,
                        "another load into this region is under way",
                    ));
                }
                // The time-out is for what nobody tells: that the store was closed meanwhile.
                Some(Purpose::Fold) => {
                    self.changed.wait_for(&mut held, Duration::from_millis(200));
                }
            }
        }
        held.insert(region, Purpose::Load);
        Ok(Hold {
            holds: self,
            region,
        })
    }

    /// Takes `region` for a fold, unless somebody has it.
    pub fn try_take_for_fold(&self, region: RegionId) -> Option<Hold<'_>> {
        let mut held = self.held.lock();
        if held.contains_key(&region) {
            return None;
        }
        held.insert(region, Purpose::Fold);
        Some(Hold {
            holds: self,
            region,
        })
    }
}

impl Hold<'_> {
    /// The fold of the region belongs to the load that just ended.
    pub fn turn_into_fold(&self) {
        self.holds.held.lock().insert(self.region, Purpose::Fold);
        self.holds.changed.notify_all();
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.holds.held.lock().remove(&self.region);
        self.holds.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_has_one_load_at_a_time() {
        let holds = Holds::default();
        let first = holds.take_for_load(RegionId(1), || Ok(())).unwrap();
        let second = holds.take_for_load(RegionId(1), || Ok(()));
        assert_eq!(second.err().unwrap().kind(), ErrorKind::Busy);
        assert!(holds.take_for_load(RegionId(2), || Ok(())).is_ok());
        assert!(holds.try_take_for_fold(RegionId(1)).is_none());
        drop(first);
        assert!(holds.try_take_for_fold(RegionId(1)).is_some());
    }

    #[test]
    fn a_load_waits_for_a_fold_as_long_as_it_may() {
        let holds = Holds::default();
        let fold = holds.try_take_for_fold(RegionId(1)).unwrap();
        let closed = || Err(Error::new(ErrorKind::Closed, "closed"));
        let refused = holds.take_for_load(RegionId(1), closed);
        assert_eq!(refused.err().unwrap().kind(), ErrorKind::Closed);
        std::thread::scope(|scope| {
            let load = scope.spawn(|| holds.take_for_load(RegionId(1), || Ok(())).is_ok());
            drop(fold);
            assert!(load.join().unwrap());
        });
    }
}
