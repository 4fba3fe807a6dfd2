//! Accounting of space: used and live bytes, room, and the plan that follows from them.

use kreon_base::{PAGE_BYTES, SEGMENT_BYTES};
use kreon_format::{GROUP_HEAD_PAGES, GROUP_SEGMENTS, MOVED_SEQUENCE_MIN, place_of};

use super::plan::{Given, Plan};
use super::{Space, Victim};
use crate::checkpoint::catalogue::MAIN_LOG;
use crate::spill::LEAF_FILL;
use crate::tuning::{
    ENTRY_BYTES, FIXED_SEGMENTS, HIDDEN_IF_DEAR_BYTES_MAX, HIDDEN_NODES_IF_DEAR,
    INLINE_OVERHEAD_BYTES, RECORD_OVERHEAD_BYTES, TARGET_SPARE_SEGMENTS, TRANSIENT_BELOW_TARGET,
};
use kreon_log::MOVED_LOG;
use kreon_volume::Space as VolumeSpace;

/// The space of a store.
#[derive(Clone, Copy, Debug)]
pub struct SpaceUse {
    /// What the store takes of the device: segments in use and those that are kept ready, in bytes.
    pub used_bytes: u64,
    /// The same without what is kept ready beyond the reserve.
    pub needed_bytes: u64,
    /// Keys and values that the trees have, in the log and in leaves, about: it follows from how many entries there are
    /// and what log and leaves take.
    pub live_bytes: u64,
    /// Live records of the log, with their headers.
    pub log_live_bytes: u64,
    /// Nodes of all trees.
    pub node_bytes: u64,
    /// What of the reserve is neither for nodes nor for L0s.
    pub fixed_reserve_bytes: u64,
}

impl SpaceUse {
    /// The share of keys and values in what users gave, about: the rest is headers of records.
    pub fn payload_share(&self) -> f64 {
        match self.log_live_bytes {
            0 => 1.0,
            log_live => (self.live_bytes as f64 / log_live as f64).min(1.0),
        }
    }

    /// Bytes used for each that is live; none: nothing is.
    pub fn amplification(&self) -> Option<f64> {
        let live = self.live_bytes;
        (live > 0).then(|| self.used_bytes as f64 / live as f64)
    }
}

impl Space {
    /// The use of space now. Waits for the allocator, whose holder may wait for the file system.
    pub fn space_use(&self) -> SpaceUse {
        let space = self.storage.allocator.lock().space();
        self.snapshot.set_space(space);
        self.space_use_of(&space)
    }

    /// The use of space without a wait, for writers: what the allocator last told, if its lock is taken. Costs the same for
    /// any number of regions.
    pub fn space_at_a_look(&self) -> SpaceUse {
        let stock = &self.snapshot;
        match self.storage.allocator.try_lock().map(|held| held.space()) {
            Some(space) => {
                stock.set_space(space);
                self.space_use_of(&space)
            }
            None => self.space_use_of(&stock.space()),
        }
    }

    fn space_use_of(&self, space: &VolumeSpace) -> SpaceUse {
        let trees = self.storage.views.load().levels.sums();
        let in_use = space.segments - space.free;
        // Values that are not in leaves are longer than those that are.
        let record_bytes =
            RECORD_OVERHEAD_BYTES + self.storage.options.inline_value_bytes_max as u64;
        let logged = trees.entries.min(space.log_live_bytes / record_bytes);
        let headers = (logged * RECORD_OVERHEAD_BYTES).min(space.log_live_bytes / 2);
        let leaf_bytes =
            (trees.leaf_pages as f64 * PAGE_BYTES as f64 * f64::from(LEAF_FILL)) as u64;
        let overhead = logged * ENTRY_BYTES + (trees.entries - logged) * INLINE_OVERHEAD_BYTES;
        let inline = leaf_bytes.saturating_sub(overhead);
        SpaceUse {
            used_bytes: space.taken_bytes,
            needed_bytes: u64::from(in_use + space.reserve.min(space.free_backed)) * SEGMENT_BYTES,
            live_bytes: space.log_live_bytes - headers + inline,
            log_live_bytes: space.log_live_bytes,
            node_bytes: trees.pages * PAGE_BYTES as u64,
            fixed_reserve_bytes: space.fixed_reserve_bytes,
        }
    }

    /// Dead bytes that L0' hides, about.
    pub(super) fn hidden_bytes(&self) -> u64 {
        let stock = &self.snapshot;
        stock.hidden_of(stock.active_bytes(self.storage.log.tail()))
    }

    /// Dead bytes that the log may hide between two spills.
    pub fn hidden_max(&self) -> u64 {
        self.plan().hidden_max
    }

    /// Plans anew after a commit: what is live and what is dead has changed.
    pub fn plan_space(&self) {
        let stock = &self.snapshot;
        let sealed = self.sealed_segments();
        let dead_bytes = sealed.iter().map(Victim::dead_bytes).sum();
        let spilled_to = self.storage.ledger.lock().log_needed_from();
        stock.committed(spilled_to, dead_bytes);
        let space = self.space_use();
        let plan = self.plan_anew(&space);
        let (room, _) = self.room(&plan, &space);
        let room = (room.max(0) as u64).min(plan.transient) / SEGMENT_BYTES;
        let spare = room.min(u64::from(u32::MAX)) as u32;
        self.storage.allocator.lock().set_spare(spare);
    }

    /// Plans with what the log has by now.
    pub(super) fn plan_anew(&self, space: &SpaceUse) -> Plan {
        let (target, cost_max) = (
            self.storage.options.space_amplification,
            self.storage.options.write_amplification_max,
        );
        let plan = Plan::new(&self.given(space), target, cost_max);
        self.snapshot.set_plan(plan);
        plan
    }

    fn given(&self, space: &SpaceUse) -> Given {
        let segments = space.used_bytes / SEGMENT_BYTES;
        let heads = segments.div_ceil(GROUP_SEGMENTS as u64) * GROUP_HEAD_PAGES;
        let unspilled_live = self.unspilled_live_bytes();
        let nodes = space.node_bytes + self.nodes_to_come_bytes(unspilled_live);
        Given {
            live: space.live_bytes + unspilled_live,
            log_live: space.log_live_bytes + unspilled_live,
            nodes,
            fixed: FIXED_SEGMENTS * SEGMENT_BYTES
                + space.fixed_reserve_bytes
                + heads * PAGE_BYTES as u64
                + 2 * self.l0_ahead_bytes() as u64,
            hidden_min: self.storage.options.unspilled_bytes_min,
            hidden_min_if_dear: self.hidden_if_dear_bytes(nodes),
        }
    }

    /// What the log may hide between two spills where the target costs more than the store may write: few data would be
    /// written anew all the time. Space matters more than writes where the store may write more than 3 bytes per byte.
    fn hidden_if_dear_bytes(&self, nodes: u64) -> u64 {
        let limit = self.storage.options.write_amplification_max / 3.0;
        let per_nodes = (nodes as f64 * HIDDEN_NODES_IF_DEAR / (limit * limit)) as u64;
        let most = (self.storage.split.l0_bytes as u64).min(HIDDEN_IF_DEAR_BYTES_MAX);
        per_nodes.min(most)
    }

    /// What spills add to the trees for new keys, of which the log has so many bytes: about what L0s take for them.
    fn nodes_to_come_bytes(&self, unspilled_live: u64) -> u64 {
        let view = self.storage.views.load();
        let l0s = view.l0s().map(|l0| l0.bytes()).sum::<usize>() as f64;
        let unspilled = self.snapshot.unspilled_bytes(self.storage.log.tail());
        (l0s * unspilled_live as f64 / unspilled.max(1) as f64) as u64
    }

    /// Bytes of the log that no spill has taken and that make nothing dead.
    fn unspilled_live_bytes(&self) -> u64 {
        let stock = &self.snapshot;
        let unspilled = stock.unspilled_bytes(self.storage.log.tail());
        unspilled - stock.hidden_of(unspilled)
    }

    /// How many bytes may be taken until the plan's target is reached, and how many are dead, as far as known. What a backup
    /// or the change feed keeps from being reused counts as free: no collection frees it, and to slow writers down would not either.
    pub(super) fn room(&self, plan: &Plan, space: &SpaceUse) -> (i64, u64) {
        let stock = &self.snapshot;
        let kept_bytes = self.storage.views.kept_bytes() + self.storage.feed.idle_bytes();
        let goal = self.goal(plan, space) + stock.excess_bytes() + kept_bytes;
        let unspilled = stock.unspilled_bytes(self.storage.log.tail());
        (
            goal as i64 - space.needed_bytes as i64,
            stock.dead_bytes() + stock.hidden_of(unspilled),
        )
    }

    /// What collection aims at by the plan alone, in bytes: less than the target, by what comes before a spill frees some.
    pub(super) fn goal(&self, plan: &Plan, space: &SpaceUse) -> u64 {
        let live = space.live_bytes + self.unspilled_live_bytes();
        let goal = ((live as f64 * plan.target) as u64).min(i64::MAX as u64 / 2);
        let below = (plan.transient as f64 * TRANSIENT_BELOW_TARGET) as u64;
        goal.saturating_sub(below + TARGET_SPARE_SEGMENTS * SEGMENT_BYTES)
    }

    /// The segments that can be emptied: everything in them was spilled. Not those that are kept for the change feed alone.
    pub fn sealed_segments(&self) -> Vec<Victim> {
        let (main, moved) = {
            let ledger = self.storage.ledger.lock();
            (ledger.log_needed_from(), ledger.moved_marker)
        };
        let allocator = self.storage.allocator.lock();
        let kept_from = self.storage.feed.kept_from();
        let is_idle = |found: &Victim| found.live_bytes == 0 && found.sequence >= kept_from;
        let mut sealed = Vec::new();
        for (log, needed_from) in [(MAIN_LOG, main), (MOVED_LOG, moved)] {
            let end = place_of(needed_from).0;
            let segments = allocator.log_segments(log).into_iter();
            sealed.extend(segments.filter(|(_, sequence)| *sequence < end).map(
                |(segment, sequence)| Victim {
                    segment,
                    sequence,
                    live_bytes: allocator.live_bytes(segment),
                },
            ));
        }
        // Those of moved records have the higher numbers, and are never kept.
        sealed.retain(|found| found.sequence >= MOVED_SEQUENCE_MIN || !is_idle(found));
        sealed
    }
}
