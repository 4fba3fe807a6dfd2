//! Who collects: a thread of the store, and writers for which there is no space.
//!
//! *Lazily*, while the store takes more space than its target: a few segments at a time, as many as it takes to make
//! up for what is written. *Under pressure*, when a put finds no space: whatever frees any.

use std::sync::Arc;
use std::time::Duration;

use kreon_base::{Error, ErrorKind, Result, SEGMENT_BYTES};

use super::round::Round;
use super::space::SpaceUse;
use super::state::Turn;
use crate::engine::core::Core;
use crate::gc::{Rules, Victim};
use crate::options::Background;
use crate::sync::Ordering;

/// Segments of one lazy round: their keys share leaves, and a round is short.
const VICTIMS_LAZY: usize = 8;

/// Segments of one round under pressure, and the least dead share that is worth it.
const VICTIMS_URGENT: usize = 16;
const DEAD_SHARE_URGENT: f64 = 0.005;

/// Rounds for one put that found no space: each of them frees something.
const ROUNDS_URGENT_MAX: usize = 64;

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
        self.has_room(segments)
    }

    fn spill_all(&self) -> Result<()> {
        self.checkpoint()?;
        self.give_back()
    }

    fn has_room(&self, segments: u32) -> Result<bool> {
        self.parts.allocator.lock().has_room(segments)
    }

    fn free_segments(&self) -> u32 {
        self.parts.allocator.lock().free_segment_count()
    }

    fn need(&self, turn: &mut Turn) -> Need {
        let space = self.space_use();
        let pending = self.pending_bytes(turn);
        let (unspilled, target) = (self.unspilled_max(), self.options.space_amplification);
        let own = (space.live_bytes as f64 * target) as u64;
        let goal = own + self.reorganisation_excess(&space, own.saturating_sub(unspilled));
        self.slow_writers_down(&space, goal + own / 2 + 2 * unspilled);
        let enough = goal.saturating_sub(unspilled);
        if space.used_bytes <= enough {
            return Need::Nothing;
        }
        // Copies take space, too, until a spill frees what they were made of: never too many of them at once.
        if space.used_bytes > goal && pending >= unspilled {
            return Need::Spill;
        }
        match space.used_bytes.saturating_sub(pending) > enough {
            true => Need::Space,
            false if space.used_bytes > goal && pending > 0 && self.is_quiet() => Need::Spill,
            false => Need::Nothing,
        }
    }

    /// Only half as much again as the goal slows writers down: a burst of overwrites is collected behind it, in peace. At
    /// the goal itself every writer ran at the pace of the collector, a tenth of its own.
    ///
    /// Writers pay for dead bytes only: what no spill has taken yet is no debt of the collector's, nor what is kept
    /// ready. Without that a load into an empty store would sleep all the way.
    fn slow_writers_down(&self, space: &SpaceUse, limit: u64) {
        let spilled = space.used_bytes - space.ready_bytes;
        let spilled = spilled.saturating_sub(self.unspilled_bytes());
        let dead = |victim: &Victim| SEGMENT_BYTES.saturating_sub(u64::from(victim.live_bytes));
        let used = match spilled > limit {
            true => spilled.min(limit + self.sealed_segments().iter().map(dead).sum::<u64>()),
            false => spilled,
        };
        self.collector.slow_down(used, limit);
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

    fn lazy_rules(&self) -> Rules {
        let target = self.options.space_amplification;
        Rules {
            dead_share_min: (target - 1.0) / target / 4.0,
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
