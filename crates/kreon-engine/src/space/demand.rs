//! What collection must do for the space plan, and which victims are worth their copies.

use super::Space;

/// A victim may be this much less dead than expected, and so much less again where there is no room.
const SHARE_OF_EXPECTED: f64 = 0.7;
const SCARCE: f64 = 0.2;

/// What collection must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing.
    Nothing,
    /// Move records: more space is taken than should be.
    Space,
    /// Enough was moved; a spill would free it.
    Spill,
}

impl Space {
    /// What is to be done so that the space never exceeds the plan's target: before the next spill enough records are
    /// moved that the garbage of the time until the one after it has room. `pending_bytes` wait in emptied segments for a
    /// spill to free them.
    pub fn collection_need(&self, pending_bytes: u64) -> Need {
        let plan = self.plan();
        let space = self.space_use();
        let excess = self.reorganisation_excess(&space, self.goal(&plan, &space));
        self.snapshot.set_excess_bytes(excess);
        let (room, _) = self.room(&plan, &space);
        let pending = pending_bytes as i64;
        let (transient, hidden) = (plan.transient as i64, self.hidden_bytes() as i64);
        let to_come = (plan.hidden_max as i64 - hidden).max(0);
        let (is_short, is_quiet) = (room < transient / 2, self.is_quiet());
        let is_worth_a_spill = pending > 0 && (hidden >= plan.hidden_max as i64 / 2 || is_quiet);
        // Without writes there is time: half as much is enough to begin with.
        let wanted = if is_quiet {
            transient / 2
        } else {
            transient + to_come
        };
        let lack = (wanted - room - pending).max(0);
        self.snapshot
            .set_copies_to_come(plan.copies_for(lack as u64));
        self.pace_writers(&space);
        // Copies take space until a spill frees their originals: never too many of them at once.
        if room < 0 && pending >= transient / 2 {
            return Need::Spill;
        }
        match lack > 0 {
            true => Need::Space,
            false if is_short && is_worth_a_spill => Need::Spill,
            false => Need::Nothing,
        }
    }

    /// The share of a victim that is to be dead, 0 to 1. With `w` bytes written for each byte given, a victim pays if
    /// `1 / w` of it is dead. Better victims come with the next spill, so worse ones are taken only as room becomes
    /// scarce.
    pub fn dead_share_expected(&self) -> f64 {
        let plan = self.plan();
        let (room, _) = self.room(&plan, &self.space_use());
        let plenty = 2.0 * room as f64 / plan.transient.max(1) as f64;
        let expected = plenty.clamp(SCARCE, 1.0) / plan.log_cost.max(1.0);
        expected * SHARE_OF_EXPECTED
    }
}
