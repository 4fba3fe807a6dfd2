//! Limits of the space that reorganisation may take beyond the plan.

use std::time::Instant;

use super::{Space, SpaceUse, Victim};
use crate::options::Background;
use crate::tuning::{EXCESS_DEAD_SHARE, EXCESS_FREE_SHARE, EXCESS_ROOM_SHARE, EXCESS_SLACK_SHARE};

/// Space left for writes beside a round, which copies at most this much.
const ROUND_BYTES_MAX: u64 = 4 << 20;

impl Space {
    /// How much more than `goal` the store may take because values are being laid together, as it takes
    /// `space` now.
    pub fn reorganisation_excess(&self, space: &SpaceUse, goal: u64) -> u64 {
        let above = self.needed_for_data(space).saturating_sub(goal);
        // With room for what comes between two spills: collection would make it otherwise.
        let most = above + self.plan().transient;
        if self.excess.is_held(Instant::now()) {
            return most;
        }
        let excess = self.excess.left(above, Instant::now());
        if excess == 0 {
            return 0;
        }
        let excess = most.min(excess + space.live_bytes / EXCESS_SLACK_SHARE);
        let cheap: u64 = self
            .sealed_segments()
            .iter()
            .filter(|victim| victim.dead_share() >= EXCESS_DEAD_SHARE)
            .map(Victim::dead_bytes)
            .sum();
        excess.saturating_sub(cheap)
    }

    /// Whether the store may take another round of copies by scans. If not, a part of the
    /// excess is taken back: collection makes room for more.
    pub fn has_space_to_reorganise(&self) -> bool {
        if self.storage.options.background == Background::Driven {
            return true;
        }
        let space = self.space_use();
        let options = &self.storage.options;
        let most = options
            .scan_space_amplification
            .max(options.space_amplification);
        let limit = (space.live_bytes as f64 * most) as u64;
        let needed = ROUND_BYTES_MAX + self.hidden_max();
        let kept = self.storage.feed.idle_bytes();
        let used = space.used_bytes.saturating_sub(kept);
        if used + needed <= limit && self.leaves_room(&space, needed) {
            return true;
        }
        let goal = (space.live_bytes as f64 * self.plan().target) as u64;
        let goal =
            goal + space.live_bytes / EXCESS_ROOM_SHARE + space.live_bytes / EXCESS_SLACK_SHARE;
        let above = self.needed_for_data(&space).saturating_sub(goal);
        self.excess.take_back(above);
        false
    }

    /// Without the log that only the change feed keeps.
    fn needed_for_data(&self, space: &SpaceUse) -> u64 {
        let kept = self.storage.feed.idle_bytes();
        space.needed_bytes.saturating_sub(kept)
    }

    /// Whether volume and file system have plenty of room for so many bytes more.
    fn leaves_room(&self, space: &SpaceUse, bytes: u64) -> bool {
        let room = self.storage.allocator.lock().room_bytes();
        room >= bytes + space.used_bytes / EXCESS_FREE_SHARE
    }
}
