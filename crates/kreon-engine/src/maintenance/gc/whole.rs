//! Collection of everything, for a compaction, whatever it costs to write.
//!
//! Every segment that is not nearly full of live records is emptied once, the emptiest first. Copies are spilled, and so
//! their old places freed, before they are many. What only snapshots see stays where it is.

use std::collections::BTreeSet;

use kreon_base::{Result, SegmentId};

use super::round::Round;
use super::state::{Gc, GcState};
use super::victims::{Rules, choose};
use crate::space::Victim;
use crate::tuning::{
    COMPACTION_UNSPILLED_BYTES, COMPACTION_UNSPILLED_SHARE, DEAD_SHARE_COMPACTION, VICTIMS_URGENT,
};
use kreon_log::MovedStream;

impl Gc {
    /// Moves live records out of all segments that have dead ones, and frees those; returns how many were moved.
    ///
    /// # Errors
    /// `Corruption`, `Io`, `Closed`, those of a spill.
    pub fn collect_all(&self) -> Result<u64> {
        let mut turn = self.turn.lock();
        let (mut tried, mut moved, mut unspilled) = (BTreeSet::new(), 0, 0);
        loop {
            self.on.storage.check_writable()?;
            let Round { victims, moved: by } = self.empty_next(&mut turn, &mut tried)?;
            if victims == 0 {
                break;
            }
            moved += by.records;
            unspilled += by.bytes_copied;
            let live_bytes = self.on.space.space_use().live_bytes;
            let most = COMPACTION_UNSPILLED_BYTES.max(live_bytes / COMPACTION_UNSPILLED_SHARE);
            if by.is_cut_short || unspilled > most {
                self.spill_all()?;
                unspilled = 0;
            }
        }
        self.spill_all()?;
        Ok(moved)
    }

    fn empty_next(
        &self,
        turn: &mut GcState,
        tried: &mut BTreeSet<(SegmentId, u64)>,
    ) -> Result<Round> {
        let is_open = |victim: &Victim| {
            victim.live_bytes > 0 && !tried.contains(&(victim.segment, victim.sequence))
        };
        let rules = Rules {
            dead_share_min: DEAD_SHARE_COMPACTION,
            count_max: VICTIMS_URGENT,
        };
        let sealed = self.on.space.sealed_segments().into_iter().filter(is_open);
        let victims = choose(sealed.collect(), &rules);
        tried.extend(victims.iter().map(|found| (found.segment, found.sequence)));
        match victims.is_empty() {
            true => Ok(Round::default()),
            false => self.collect_victims(turn, &victims),
        }
    }

    /// Ends the open segment of moved records, so that it can be emptied and freed as any other.
    ///
    /// # Errors
    /// `Io`: the store is poisoned.
    pub fn close_moved(&self) -> Result<()> {
        let mut stream = self.on.storage.moved.lock();
        let closed = self.close_stream(&mut stream);
        // No other thread inserts meanwhile: copies are made and inserted under this lock.
        self.on.versions.set_inserted(stream.end());
        let closed = closed.inspect_err(|error| self.on.storage.poison.set(error))?;
        match closed {
            Some((segment, end)) => self.on.storage.allocator.lock().cut_tail(segment, end),
            None => Ok(()),
        }
    }

    fn close_stream(&self, stream: &mut MovedStream) -> Result<Option<(SegmentId, u32)>> {
        stream.close(&self.on.storage.log, &self.on.storage.log_pages())
    }
}
