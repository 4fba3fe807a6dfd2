//! How much space there is, how much of it is live, and how much there should be.

use kreon_base::{PAGE_BYTES, SEGMENT_BYTES};
use kreon_format::place_of;

use crate::checkpoint::catalogue::MAIN_LOG;
use crate::engine::core::Core;
use crate::gc::Victim;
use crate::log::MOVED_LOG;

/// What an entry of a leaf takes that points into the log, about: more than that is a value in the leaf.
const ENTRY_BYTES: u64 = 48;

/// The log between two spills may have this share of what a target leaves over the live data: the more, the fewer
/// times leaves are written, the less, the more dead bytes may wait until there are many in a segment.
const UNSPILLED_SHARE: f64 = 0.25;

/// The space of a store.
#[derive(Clone, Copy, Debug)]
pub struct SpaceUse {
    /// Segments in use and those that are kept ready, in bytes.
    pub used_bytes: u64,
    /// Of these, those of segments that are kept ready.
    pub ready_bytes: u64,
    /// Keys and values that are in the trees, where they are in the log or in leaves.
    pub live_bytes: u64,
}

impl SpaceUse {
    /// Bytes used for each that is live.
    pub fn amplification(&self) -> f64 {
        match self.live_bytes {
            0 => 1.0,
            live => self.used_bytes as f64 / live as f64,
        }
    }
}

impl Core {
    /// Takes stock.
    pub(in crate::engine) fn space_use(&self) -> SpaceUse {
        let view = self.parts.views.load();
        let trees = view.levels.regions().flat_map(|(_, trees)| trees);
        let inline: u64 = trees
            .map(|tree| {
                let leaf_bytes = tree.leaf_pages * PAGE_BYTES as u64;
                leaf_bytes.saturating_sub(tree.entries * ENTRY_BYTES)
            })
            .sum();
        let space = self.parts.allocator.lock().space();
        let segments = space.segments - space.free + space.free_backed;
        SpaceUse {
            used_bytes: u64::from(segments) * SEGMENT_BYTES,
            ready_bytes: u64::from(space.free_backed) * SEGMENT_BYTES,
            live_bytes: space.log_live_bytes + inline,
        }
    }

    /// Bytes of the log that no spill has taken.
    pub(super) fn unspilled_bytes(&self) -> u64 {
        let spilled = self.parts.ledger.lock().log_needed_from();
        self.parts.log.tail().0.saturating_sub(spilled.0)
    }

    /// How far the log may grow between two spills.
    pub(in crate::engine) fn unspilled_max(&self) -> u64 {
        let live = self.space_use().live_bytes as f64;
        let share = (self.options.space_amplification - 1.0) * UNSPILLED_SHARE;
        ((live * share) as u64).max(self.options.unspilled_bytes_min)
    }

    /// The segments that can be emptied: everything in them was spilled.
    pub(in crate::engine) fn sealed_segments(&self) -> Vec<Victim> {
        let (main, moved) = {
            let ledger = self.parts.ledger.lock();
            (ledger.log_needed_from(), ledger.moved_marker)
        };
        let allocator = self.parts.allocator.lock();
        let mut sealed = Vec::new();
        for (log, needed_from) in [(MAIN_LOG, main), (MOVED_LOG, moved)] {
            let end = place_of(needed_from).0;
            let segments = allocator.log_segments(log).into_iter();
            sealed.extend(segments.filter(|(_, sequence)| *sequence < end).map(
                |(segment, sequence)| Victim {
                    segment,
                    sequence,
                    live_bytes: allocator.live_bytes(segment),
                    age: end - sequence,
                },
            ));
        }
        sealed
    }
}
