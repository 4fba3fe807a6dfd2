//! A round: some segments, from the choice to the last inserted entry.

use std::sync::Arc;
use std::time::Instant;

use kreon_base::{ErrorKind, Result};

use super::moving::Moved;
use super::state::Turn;
use crate::engine::core::Core;
use crate::gc::{self, Candidates, Rules, Victim};

/// What a round did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Round {
    /// Segments that it took up.
    pub victims: usize,
    /// What it moved out of them.
    pub moved: Moved,
}

impl Core {
    /// Moves the live records of some segments, by `rules`. None of them left: nothing is done.
    ///
    /// # Errors
    /// `Corruption`, `Io`, `Closed`.
    pub(super) fn collect_round(self: &Arc<Self>, turn: &mut Turn, rules: &Rules) -> Result<Round> {
        let spills = self.pressure.spills_ended();
        let sealed = self.sealed_segments().into_iter();
        let open = sealed.filter(|victim| victim.live_bytes > 0 && turn.may_try(victim, spills));
        let victims = gc::choose(open.collect(), rules);
        match victims.is_empty() {
            true => Ok(Round::default()),
            false => self.collect_victims(turn, &victims),
        }
    }

    /// The same with these segments.
    ///
    /// # Errors
    /// `Corruption`, `Io`, `Closed`.
    pub(super) fn collect_victims(
        self: &Arc<Self>,
        turn: &mut Turn,
        victims: &[Victim],
    ) -> Result<Round> {
        let (begun, spills) = (Instant::now(), self.pressure.spills_ended());
        let moved = self.empty(turn, victims)?;
        for victim in victims {
            turn.note(victim, spills);
        }
        self.collector.count(victims.len(), &moved, begun.elapsed());
        Ok(Round {
            victims: victims.len(),
            moved,
        })
    }

    fn empty(self: &Arc<Self>, turn: &mut Turn, victims: &[Victim]) -> Result<Moved> {
        let mut candidates = Candidates::default();
        {
            // None of them is handed out again while they are read.
            let _view = self.parts.views.load_full();
            let (log, pages) = (&self.parts.log, self.log_pages());
            for victim in victims {
                let added = candidates.add_all_of(log, &pages, victim, &mut turn.buffer);
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
