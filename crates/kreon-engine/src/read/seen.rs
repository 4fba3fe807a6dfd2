//! Gets that tell what of L0 they have met: the primary of a group answers them when that cannot vanish any more.

use kreon_base::{Lsn, Result};

use super::Reader;
use crate::regions::RegionState;
use kreon_log::TakeValue;

/// What a get has met in L0' and L0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Position of the newest version or deletion that had a part in the answer. `None`: the answer comes from the levels,
    /// or there is none; what they hold was durable on all members before it was there.
    pub newest: Option<Lsn>,
}

impl Seen {
    /// Whether the answer rests on what has landed only; `unlanded_from` is of a moment after the get. If not, it may be
    /// given when all that stood in the log at such a moment has landed: a unit lands as a whole or not at all, and
    /// the position of one of its records says nothing of its end.
    pub fn is_landed(&self, unlanded_from: Lsn) -> bool {
        self.newest.is_none_or(|newest| newest < unlanded_from)
    }

    fn meet(&mut self, lsn: Lsn) {
        self.newest = self.newest.max(Some(lsn));
    }
}

impl Reader {
    /// As [`get_value`](Self::get_value), now, and what it has met.
    pub fn get_seen<T: TakeValue>(
        &self,
        region: &RegionState,
        key: &[u8],
        take: T,
    ) -> Result<(Option<T::Taken>, Seen)> {
        let mut seen = Seen::default();
        let mut meet = |lsn| seen.meet(lsn);
        let taken = self.get_meeting(region, key, self.now(), take, &mut meet)?;
        Ok((taken, seen))
    }
}
