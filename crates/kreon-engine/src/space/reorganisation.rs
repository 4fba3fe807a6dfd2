//! Limits of the space that reorganisation may take beyond the plan.

use std::time::Instant;

use kreon_base::SEGMENT_BYTES;

use super::{Space, SpaceUse};
use crate::options::Background;

/// Space left for writes beside a round, which copies at most this much.
const ROUND_BYTES_MAX: u64 = 4 << 20;

/// Segments with this share of dead bytes are collected in spite of the excess: nine bytes become free for each one copied.
const DEAD_SHARE: f64 = 0.9;

/// This share of the live data varies with spills and is no reason to collect.
const SLACK_SHARE: u64 = 8;

/// At the limit, room is made for this share of the live data.
const ROOM_SHARE: u64 = 16;

/// This share of what a store takes stays free on its volume and file system, for other writers.
const FREE_SHARE: u64 = 8;

impl Space {
    /// How much more than `goal` the store may take because values are being laid together, as it takes
    /// `space` now.
    pub fn reorganisation_excess(&self, space: &SpaceUse, goal: u64) -> u64 {
        let above = space.needed_bytes.saturating_sub(goal);
        let excess = self.excess.left(above, Instant::now());
        if excess == 0 {
            return 0;
        }
        let excess = above.min(excess + space.live_bytes / SLACK_SHARE);
        let cheap: u64 = self
            .sealed_segments()
            .iter()
            .filter(|victim| victim.dead_share() >= DEAD_SHARE)
            .map(|victim| SEGMENT_BYTES.saturating_sub(u64::from(victim.live_bytes)))
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
        if space.used_bytes + needed <= limit && self.leaves_room(&space, needed) {
            return true;
        }
        let goal = (space.live_bytes as f64 * self.plan().target) as u64;
        let goal = goal + space.live_bytes / ROOM_SHARE + space.live_bytes / SLACK_SHARE;
        let above = space.needed_bytes.saturating_sub(goal);
        self.excess.take_back(above);
        false
    }

    /// Whether volume and file system have plenty of room for so many bytes more.
    fn leaves_room(&self, space: &SpaceUse, bytes: u64) -> bool {
        let room = self.storage.allocator.lock().room_bytes();
        room >= bytes + space.used_bytes / FREE_SHARE
    }
}
