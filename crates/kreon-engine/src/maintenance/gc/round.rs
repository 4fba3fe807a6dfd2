//! A round: some segments, from the choice to the last inserted entry.

use std::time::Instant;

use kreon_base::{ErrorKind, Result};

use super::candidates::Candidates;
use super::insert::Moved;
use super::state::{Gc, GcState};
use super::victims::{Rules, choose};
use crate::events::Event;
use crate::space::Victim;

/// Outcome of a round.
#[derive(Clone, Copy, Debug, Default)]
pub struct Round {
    /// Victims.
    pub victims: usize,
    /// Records moved out of them.
    pub moved: Moved,
}

impl Gc {
    /// Moves the live records of some segments, by `rules`. None of them left: nothing is done.
    ///
    /// # Errors
    /// `Corruption`, `Io`, `Closed`.
    pub fn collect_round(&self, turn: &mut GcState, rules: &Rules) -> Result<Round> {
        let spills = self.on.throttle.spills_ended();
        let sealed = self.on.space.sealed_segments().into_iter();
        let open = sealed.filter(|victim| victim.live_bytes > 0 && turn.may_try(victim, spills));
        let victims = choose(open.collect(), rules);
        match victims.is_empty() {
            true => Ok(Round::default()),
            false => self.collect_victims(turn, &victims),
        }
    }

    /// The same with these segments.
    ///
    /// # Errors
    /// `Corruption`, `Io`, `Closed`.
    pub fn collect_victims(&self, turn: &mut GcState, victims: &[Victim]) -> Result<Round> {
        let (begun, spills) = (Instant::now(), self.on.throttle.spills_ended());
        let segments = victims.len() as u64;
        let _span = tracing::debug_span!("collection", segments).entered();
        let outcome = self.empty(turn, victims);
        let moved = outcome.as_ref().ok();
        self.on.storage.tell(&Event::CollectionEnded {
            segments,
            records_moved: moved.map_or(0, |moved| moved.records),
            bytes_copied: moved.map_or(0, |moved| moved.bytes_copied),
            took: begun.elapsed(),
            error: outcome.as_ref().err().cloned(),
        });
        let moved = outcome?;
        for victim in victims {
            turn.note(victim, spills);
        }
        self.count(victims.len(), &moved, begun.elapsed());
        Ok(Round {
            victims: victims.len(),
            moved,
        })
    }

    fn empty(&self, turn: &mut GcState, victims: &[Victim]) -> Result<Moved> {
        let mut candidates = Candidates::default();
        {
            // The view keeps the segments from being reused while they are read.
            let _view = self.on.storage.views.load_full();
            let (log, pages) = (&self.on.storage.log, self.on.storage.log_pages());
            for victim in victims {
                let dead = self.on.storage.dead.of(victim.segment, victim.sequence);
                let of = (victim, dead.as_ref());
                let added = candidates.add_all_of(log.reader(), &pages, of, &mut turn.buffer);
                added.map_err(|error| error.within("garbage collection"))?;
            }
        }
        let moved = self.move_records(&candidates, &mut turn.buffer);
        moved.inspect_err(|error| {
            if error.kind() != ErrorKind::Closed {
                tracing::warn!(%error, "garbage collection failed");
            }
        })
    }
}
