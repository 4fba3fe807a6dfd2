//! Takes the figures of a moment, decides by them, and carries that out: the sleep of writers, the wakeup of collection.

use kreon_base::{Lsn, SEGMENT_BYTES};

use super::demand::{Need, Situation};
use super::{Space, SpaceUse};
use crate::options::Background;
use crate::tuning::SPACE_LOOK_BYTES;

impl Space {
    /// Whether the writer of a record from `start` to `end` is to look at the space.
    pub fn is_look_due(&self, start: Lsn, end: Lsn) -> bool {
        end.0 / SPACE_LOOK_BYTES != start.0 / SPACE_LOOK_BYTES
    }

    /// A writer looks at the space and wakes collection if there is too little. Called outside the gate. It does not wait
    /// for the allocator, whose holder may wait for the file system, but after a few such looks it does, so that the
    /// reserve of L0s stays ahead of their needs.
    pub fn look_at_space(&self) {
        let l0s = self.l0s_reserve();
        let allocator = &self.storage.allocator;
        let held = allocator.try_lock();
        let held = held.or_else(|| self.snapshot.is_look_overdue().then(|| allocator.lock()));
        if let Some(mut allocator) = held {
            self.snapshot.looked();
            allocator.set_reserve_of_l0s(l0s);
        }
        let situation = self.situation(&self.space_at_a_look());
        self.limit(&situation);
        if situation.wakes_collection() {
            self.collection_wanted.call();
        }
    }

    /// What collection is to do, while `pending_bytes` wait in emptied segments for a spill to free them.
    pub fn collection_need(&self, pending_bytes: u64) -> Need {
        let space = self.space_use();
        let excess = self.reorganisation_excess(&space, self.goal(&self.plan(), &space));
        self.snapshot.set_excess_bytes(excess);
        let mut situation = self.situation(&space);
        situation.is_quiet = self.is_quiet();
        self.limit(&situation);
        situation.need(pending_bytes)
    }

    /// The share of a victim that is to be dead, 0 to 1.
    pub fn dead_share_min(&self) -> f64 {
        self.plan().dead_share_min()
    }

    fn situation(&self, space: &SpaceUse) -> Situation {
        let plan = self.plan();
        let (room, dead) = self.room(&plan, space);
        let is_spilling = self.storage.views.load().frozen.is_some();
        Situation {
            plan,
            room,
            dead,
            hidden: self.hidden_bytes(),
            spilled: is_spilling.then(|| self.throttle.progress.share()),
            is_quiet: false,
        }
    }

    /// Has writers sleep for scarce space, and the volume take no more blocks ahead than there is room for.
    fn limit(&self, situation: &Situation) {
        let room = situation.room.max(0) as u64 / SEGMENT_BYTES;
        if let Some(mut allocator) = self.storage.allocator.try_lock() {
            allocator.set_run_max(room.min(u64::from(u32::MAX)) as u32);
        }
        // A writer that collects itself gains nothing by sleeping.
        if self.storage.options.background != Background::Inline {
            self.throttle.slow_down(situation.throttle_share());
        }
    }
}
