//! Writers sleep when free space falls below what the plan still needs before the next spill, and collection is woken
//! before that.

use kreon_base::Lsn;

use super::{Plan, Space, SpaceUse};
use crate::options::Background;

/// Writers begin to sleep when the room exceeds the expected need by less than this share of the transient space. With no
/// excess their throttle is at a half.
const GUARD_SHARE: f64 = 1.0 / 3.0;

/// Writers look at the space at borders of this.
const LOOK_BYTES: u64 = 256 << 10;

impl Space {
    /// Whether the writer of a record from `start` to `end` is to look at the space.
    pub fn is_look_due(&self, start: Lsn, end: Lsn) -> bool {
        end.0 / LOOK_BYTES != start.0 / LOOK_BYTES
    }

    /// Sets the sleep of writers from the room that lacks until the next spill frees some; returns the room and the dead
    /// bytes. Only dead bytes are paid for, so a load of new keys never sleeps.
    pub fn pace_writers(&self, space: &SpaceUse) -> (i64, u64) {
        let plan = self.plan();
        let (room, dead) = self.room(&plan, space);
        let transient = plan.transient.max(1) as f64;
        let line = self.still_to_come(&plan) + transient * GUARD_SHARE;
        let lack = (line - room as f64).max(0.0).min(dead as f64);
        let share = lack / (transient * 2.0 * GUARD_SHARE);
        // A writer that collects itself gains nothing by sleeping.
        if self.storage.options.background != Background::Inline {
            self.throttle.slow_down(share.min(1.0));
        }
        (room, dead)
    }

    /// Bytes of new space still needed before the next spill frees some.
    fn still_to_come(&self, plan: &Plan) -> f64 {
        // L0' fills while L0 is spilled, and then alone.
        match self.storage.views.load().frozen.is_some() {
            true => plan.beside_to_come(self.throttle.progress.share()),
            false => plan.still_to_come(self.hidden_bytes(), self.snapshot.copies_to_come()),
        }
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
        let (room, dead) = self.pace_writers(&self.space_at_a_look());
        if dead > 0 && room < 2 * self.plan().transient as i64 {
            self.collection_wanted.call();
        }
    }
}
