//! Who collects: a thread of the store, and writers for which there is no space.
//!
//! *Lazily*, while the store takes more space than its target: a few segments at a time, as many as it takes to make
//! up for what is written. *Under pressure*, when a put finds no space: whatever frees any.

use std::sync::Arc;
use std::time::Duration;

use kreon_base::{Error, ErrorKind, Result, SEGMENT_BYTES};

use super::plan::Plan;
use super::round::Round;
use super::space::SpaceUse;
use super::state::Turn;
use crate::engine::core::Core;
use crate::gc::Rules;
use crate::options::Background;
use crate::sync::Ordering;

/// Segments of one lazy round: their keys share leaves, and a round is short, because nothing that a spill frees can be
/// taken before it ends.
const VICTIMS_LAZY: usize = 3;

/// Segments of one round under pressure, and the least dead share that is worth it.
const VICTIMS_URGENT: usize = 16;
const DEAD_SHARE_URGENT: f64 = 0.005;

/// A victim may be this much less dead than expected, and so much less again where there is no room.
const SHARE_OF_EXPECTED: f64 = 0.7;
const SCARCE: f64 = 0.2;

/// Writers are slowed down from so much room on beside what is still to come, half as much as it gets where there is none.
const GUARD_SHARE: f64 = 1.0 / 3.0;

/// Rounds for one put that found no space: each of them frees something.
const ROUNDS_URGENT_MAX: usize = 64;

/// A put that finds no space waits so many milliseconds for readers of what would be free without them.
const READERS_MS_MAX: u32 = 500;

/// How long the thread that collects sleeps when it has nothing to do.
const PATIENCE: Duration = Duration::from_millis(50);

/// Why there is something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    Nothing,
    /// More space is taken than should be.
    Space,
    /// Enough was moved; a spill would free it.
    Spill,
}

impl Core {
    /// The body of the thread that collects.
    pub(in crate::engine) fn collect_loop(self: &Arc<Self>) {
        while !self.closed.load(Ordering::Acquire) {
            self.collector.wanted.wait(PATIENCE);
            while !self.closed.load(Ordering::Acquire) && self.parts.poison.check().is_ok() {
                match self.collect_lazily() {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(_) => {
                        // Told by then. Damage stays where it is, and is no reason to look at it all the time.
                        self.collector.wanted.wait(Duration::from_secs(1));
                        break;
                    }
                }
            }
        }
    }

    /// Collects a little, if the store takes more space than its target; whether it did.
    pub(in crate::engine) fn collect_lazily(self: &Arc<Self>) -> Result<bool> {
        let Some(mut turn) = self.collector.turn.try_lock() else {
            return Ok(false);
        };
        let need = self.need(&mut turn);
        let mut wants_spill = need == Need::Spill;
        let mut did_something = false;
        if need == Need::Space {
            let Round { victims, moved } = self.collect_round(&mut turn, &self.lazy_rules())?;
            did_something = victims > 0 && !moved.is_cut_short;
            // Whatever can be moved was: then that is what there is to gain.
            wants_spill = !did_something && self.pending_bytes(&mut turn) > 0;
        }
        drop(turn);
        // A round reads through a view of its own, which holds up what a spill beside it freed.
        self.give_back()?;
        if wants_spill && self.freeze(0) {
            self.want_spill();
        }
        Ok(did_something)
    }

    /// One round of whatever frees space, for [`Background::Driven`].
    pub(in crate::engine) fn collect_driven(self: &Arc<Self>) -> Result<()> {
        let mut turn = self.collector.turn.lock();
        let rules = self.urgent_rules();
        self.collect_round(&mut turn, &rules).map(|_| ())
    }

    /// A put that needs so many segments found no space: frees some, if there is anything dead; whether it is worth
    /// trying again.
    ///
    /// # Errors
    /// Those of a spill.
    pub(in crate::engine) fn relieve(self: &Arc<Self>, segments: u32) -> Result<bool> {
        if self.options.background == Background::Driven {
            return Ok(false);
        }
        let mut turn = self.collector.turn.lock();
        self.check_writable()?;
        let mut least = self.free_segments();
        for _ in 0..ROUNDS_URGENT_MAX {
            // What is in L0 may have made whole segments dead, and what was moved waits for it.
            self.spill_all()?;
            if self.has_room(segments)? {
                return Ok(true);
            }
            let free = self.free_segments();
            let rules = self.urgent_rules();
            let Round { victims, moved } = self.collect_round(&mut turn, &rules)?;
            if victims == 0 || (moved.records == 0 && free <= least) {
                break;
            }
            least = free;
        }
        self.spill_all()?;
        self.wait_for_readers(segments)
    }

    /// Whether there is room once readers have let go of what is free but for them: they hold it for a moment only.
    fn wait_for_readers(&self, segments: u32) -> Result<bool> {
        for _ in 0..READERS_MS_MAX {
            if self.has_room(segments)? || self.parts.views.waiting() == (0, 0) {
                break;
            }
            crate::sync::sleep(Duration::from_millis(1));
            self.give_back()?;
        }
        self.has_room(segments)
    }

    pub(super) fn spill_all(&self) -> Result<()> {
        self.checkpoint()?;
        self.give_back()
    }

    fn has_room(&self, segments: u32) -> Result<bool> {
        self.parts.allocator.lock().has_room(segments)
    }

    fn free_segments(&self) -> u32 {
        self.parts.allocator.lock().free_segment_count()
    }

    /// What is to be done so that the space never exceeds the plan's target: by the next spill so much is to be moved
    /// that what comes on top until the one after it has room.
    fn need(&self, turn: &mut Turn) -> Need {
        let (stock, plan) = (&self.collector.stock, self.collector.plan());
        let space = self.space_use();
        let excess = self.reorganisation_excess(&space, self.goal(&plan, &space));
        stock.set_excess_bytes(excess);
        let (room, _) = self.room(&plan, &space);
        let pending = self.pending_bytes(turn) as i64;
        let (transient, hidden) = (plan.transient as i64, self.hidden_bytes() as i64);
        let to_come = (plan.hidden_max as i64 - hidden).max(0);
        let (is_short, is_quiet) = (room < transient / 2, self.is_quiet());
        let is_worth_a_spill = pending > 0 && (hidden >= plan.hidden_max as i64 / 2 || is_quiet);
        // While nobody writes there is time: half as much will do to begin with.
        let wanted = if is_quiet {
            transient / 2
        } else {
            transient + to_come
        };
        let lack = (wanted - room - pending).max(0);
        stock.set_copies_to_come(plan.copies_for(lack as u64));
        self.pace_writers(&space);
        // Copies take space, too, until a spill frees what they were made of: never too many of them at once.
        if room < 0 && pending >= transient / 2 {
            return Need::Spill;
        }
        match lack > 0 {
            true => Need::Space,
            false if is_short && is_worth_a_spill => Need::Spill,
            false => Need::Nothing,
        }
    }

    /// Slows writers down as the room becomes less than what comes on top until a spill frees some, and tells the room
    /// and what is dead. They pay for dead bytes only: a load of new keys has none.
    pub(in crate::engine) fn pace_writers(&self, space: &SpaceUse) -> (i64, u64) {
        let plan = self.collector.plan();
        let (room, dead) = self.room(&plan, space);
        let transient = plan.transient.max(1) as f64;
        let line = self.still_to_come(&plan) + transient * GUARD_SHARE;
        let lack = (line - room as f64).max(0.0).min(dead as f64);
        let share = lack / (transient * 2.0 * GUARD_SHARE);
        // Who collects itself gains nothing by sleeping.
        if self.options.background != Background::Inline {
            self.collector.slow_down(share.min(1.0));
        }
        (room, dead)
    }

    /// Bytes of new space still needed before the next spill frees some.
    fn still_to_come(&self, plan: &Plan) -> f64 {
        // L0' fills while L0 is spilled, and then alone.
        match self.parts.views.load().frozen.is_some() {
            true => plan.beside_to_come(self.pressure.progress.share()),
            false => plan.still_to_come(self.hidden_bytes(), self.collector.stock.copies_to_come()),
        }
    }

    /// A writer looks at the space, and wakes who collects, if need be. Outside the gate, and without waiting for who
    /// has the allocator: that may be waiting for the file system. Then the next look but one at the latest tells it what L0s need: the reserve is ahead
    /// of that.
    pub(in crate::engine) fn look_at_space(&self) {
        let l0s = self.l0s_reserve();
        let allocator = &self.parts.allocator;
        let held = allocator.try_lock();
        let held = held.or_else(|| {
            self.collector
                .stock
                .is_look_overdue()
                .then(|| allocator.lock())
        });
        if let Some(mut allocator) = held {
            self.collector.stock.looked();
            allocator.set_reserve_of_l0s(l0s);
        }
        let (room, dead) = self.pace_writers(&self.space_at_a_look());
        if dead > 0 && room < 2 * self.collector.plan().transient as i64 {
            self.collector.wanted.call();
        }
    }

    /// What segments hold whose records were all moved: the next spills free them.
    fn pending_bytes(&self, turn: &mut Turn) -> u64 {
        let log = &self.parts.log;
        let is_there = |segment, sequence| log.sequence_of(segment) == Some(sequence);
        turn.pending(self.pressure.spills_ended(), is_there) * SEGMENT_BYTES
    }

    /// Whether nobody wrote since the last look.
    fn is_quiet(&self) -> bool {
        self.collector.is_quiet(self.parts.log.tail())
    }

    /// Victims are to be as dead as the plan counts on: `w` bytes written for each byte given make room where `1 / w` of a
    /// victim is dead. Better ones come with the next spill, so worse ones are taken only as room becomes scarce.
    fn lazy_rules(&self) -> Rules {
        let plan = self.collector.plan();
        let (room, _) = self.room(&plan, &self.space_use());
        let plenty = 2.0 * room as f64 / plan.transient.max(1) as f64;
        let expected = plenty.clamp(SCARCE, 1.0) / plan.log_cost.max(1.0);
        Rules {
            dead_share_min: expected * SHARE_OF_EXPECTED,
            is_urgent: false,
            count_max: VICTIMS_LAZY,
            live_bytes_max: u64::MAX,
        }
    }

    fn urgent_rules(&self) -> Rules {
        Rules {
            dead_share_min: DEAD_SHARE_URGENT,
            is_urgent: true,
            count_max: VICTIMS_URGENT,
            live_bytes_max: u64::MAX,
        }
    }
}

/// Whether `error` says that the volume is full.
pub fn is_full(error: &Error) -> bool {
    error.kind() == ErrorKind::OutOfSpace
}
