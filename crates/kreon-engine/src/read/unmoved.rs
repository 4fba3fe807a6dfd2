//! Gets of now whose answer can be asked for later changes, without a snapshot.

use kreon_base::{Attributes, Lsn, Result};

use super::Reader;
use super::changed::{LevelsSeen, newest_in_l0s};
use super::get::{Found, Once};
use crate::level::View;
use crate::regions::RegionState;
use kreon_log::TakeValue;

/// What a get has met, which identifies the version that it found as long as the levels stay the same.
pub struct Unmoved {
    /// The newest write of the key in L0' and L0.
    newest: Option<Lsn>,
    levels: LevelsSeen,
    /// Loads of the region that were shown by then.
    loads_shown: usize,
}

impl Unmoved {
    /// Whether `key` still has the version that the get found. `false` also if that is not known, as the levels changed
    /// or the record was moved. The gate is closed.
    pub fn is_newest(&self, view: &View, region: &RegionState, key: &[u8]) -> bool {
        if newest_in_l0s(view, region.id, key) != self.newest {
            return false;
        }
        // An LSN stands for one write, but 0: that is of a moved record, as old as any. A later version of the key can come
        // to have it, too, by a spill and another move.
        self.newest > Some(Lsn(0))
            || (self.levels.are_of(view)
                && view.levels.shown_since(region.id, Lsn(0)) == self.loads_shown)
    }
}

/// What became of a value, and what is kept beside it; `None`: there is none.
type Kept<T> = Option<(T, Attributes)>;

impl Reader {
    /// As [`get_value`](Self::get_value), now, with what is kept beside the value, and with what it has met.
    ///
    /// # Errors
    /// Those of a get.
    pub fn get_unmoved<T: TakeValue>(
        &self,
        region: &RegionState,
        key: &[u8],
        take: T,
    ) -> Result<(Kept<T::Taken>, Unmoved)> {
        let view = self.view_of(region)?;
        // Before the get: what is shown or written later is met later.
        let mut unmoved = Unmoved {
            newest: None,
            levels: LevelsSeen::of(&view),
            loads_shown: view.levels.shown_since(region.id, Lsn(0)),
        };
        let mut take = Once::new(take);
        let newest = &mut unmoved.newest;
        let mut meet = |lsn| *newest = (*newest).max(Some(lsn));
        let taken = match self.find(&view, region, key, self.now(), &mut take, &mut meet)? {
            None | Some(Found::Deleted) => None,
            Some(Found::Shown(taken)) => taken,
            Some(Found::Located(located)) => {
                let pages = self.storage.log_pages();
                self.show_once(region, key, &located, &pages, &mut take)?
            }
        };
        Ok((taken.map(|taken| (taken, take.attributes)), unmoved))
    }
}
