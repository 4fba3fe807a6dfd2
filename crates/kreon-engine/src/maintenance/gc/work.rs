//! When collection runs, and how much it takes up.
//!
//! *Lazy* collection runs in a thread of the store while the store takes more space than its target, a few segments at a
//! time. *Urgent* collection runs in a writer that found no space and takes up whatever frees any.

use std::time::Duration;

use kreon_base::{Result, SEGMENT_BYTES};

use super::round::Round;
use super::state::{Gc, GcState};
use super::victims::Rules;
use crate::options::Background;
use crate::space::Need;
use crate::tuning::{DEAD_SHARE_URGENT, VICTIMS_LAZY, VICTIMS_URGENT};

/// Most urgent rounds for one put; each of them frees something.
const ROUNDS_URGENT_MAX: usize = 64;

/// How long a put without space waits for readers of retired segments, in milliseconds.
const READERS_MS_MAX: u32 = 500;

impl Gc {
    /// Collects a little, if the store takes more space than its target; whether it did.
    pub fn collect_lazily(&self) -> Result<bool> {
        let Some(mut turn) = self.turn.try_lock() else {
            return Ok(false);
        };
        let need = self.on.space.collection_need(self.pending_bytes(&mut turn));
        let mut wants_spill = need == Need::Spill;
        let mut did_something = false;
        if need == Need::Space || (wants_spill && !self.has_anything_to_spill()) {
            let Round { victims, moved } = self.collect_round(&mut turn, &self.lazy_rules())?;
            did_something = victims > 0 && !moved.is_cut_short;
            // Nothing more can be moved: only a spill frees more.
            wants_spill = !did_something && self.pending_bytes(&mut turn) > 0;
        }
        drop(turn);
        // The view of the round kept what a spill beside it retired.
        self.on.versions.reclaim()?;
        if wants_spill && self.on.versions.freeze(0) {
            self.spiller.ask();
        }
        Ok(did_something)
    }

    /// One round of whatever frees space, for [`Background::Driven`].
    pub fn collect_driven(&self) -> Result<()> {
        let mut turn = self.turn.lock();
        let rules = self.urgent_rules();
        self.collect_round(&mut turn, &rules).map(|_| ())
    }

    /// A put that needs so many segments found no space: frees some, if there is log that is kept for the change feed alone, or
    /// anything dead; whether it is worth trying again.
    ///
    /// # Errors
    /// Those of a spill.
    pub fn free_space_for(&self, segments: u32) -> Result<bool> {
        self.on.storage.check_writable()?;
        let versions = &self.on.versions;
        // What collection empties may be kept, too.
        let is_freed = versions.give_up_kept_for(segments)?
            || self.collect_for(segments)?
            || versions.give_up_kept_for(segments)?;
        Ok(is_freed)
    }

    fn collect_for(&self, segments: u32) -> Result<bool> {
        if self.on.storage.options.background == Background::Driven {
            return Ok(false);
        }
        let _stalled = self.on.throttle.begin_full_volume();
        let mut turn = self.turn.lock();
        self.on.storage.check_writable()?;
        let mut least = self.free_segments();
        for _ in 0..ROUNDS_URGENT_MAX {
            // A spill frees segments that entries of L0 made dead, and those whose records were moved.
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

    /// Waits for readers of retired segments, which hold them briefly; whether there is room then.
    fn wait_for_readers(&self, segments: u32) -> Result<bool> {
        for _ in 0..READERS_MS_MAX {
            if self.has_room(segments)? || self.on.storage.views.waiting() == (0, 0) {
                break;
            }
            kreon_sync::sleep(Duration::from_millis(1));
            self.on.versions.reclaim()?;
        }
        self.has_room(segments)
    }

    /// Whether a spill could free anything: not if all was spilled since, and snapshots keep what was emptied.
    fn has_anything_to_spill(&self) -> bool {
        let view = self.on.storage.views.load();
        view.frozen.is_some() || !view.active.is_empty()
    }

    pub fn spill_all(&self) -> Result<()> {
        self.spiller.checkpoint()?;
        self.on.versions.reclaim()
    }

    fn has_room(&self, segments: u32) -> Result<bool> {
        self.on.storage.allocator.lock().has_room(segments)
    }

    fn free_segments(&self) -> u32 {
        self.on.storage.allocator.lock().free_segment_count()
    }

    /// Bytes of segments whose records were all moved: the next spills free them.
    fn pending_bytes(&self, turn: &mut GcState) -> u64 {
        let log = self.on.storage.log.reader();
        let is_there = |segment, sequence| log.sequence_of(segment) == Some(sequence);
        turn.pending(self.on.throttle.spills_ended(), is_there) * SEGMENT_BYTES
    }

    /// What a lazy round may take.
    fn lazy_rules(&self) -> Rules {
        Rules {
            dead_share_min: self.on.space.dead_share_min(),
            count_max: VICTIMS_LAZY,
        }
    }

    fn urgent_rules(&self) -> Rules {
        Rules {
            dead_share_min: DEAD_SHARE_URGENT,
            count_max: VICTIMS_URGENT,
        }
    }
}
