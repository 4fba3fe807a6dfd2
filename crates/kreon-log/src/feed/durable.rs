//! What a log knows of its runs and of its durable end.

use std::time::Duration;

use kreon_base::{Incarnation, Lsn};
use kreon_format::LogResume;

use crate::history::split_runs;
use crate::log::Log;

impl Log {
    /// The run that wrote what stands at `at`, and where later ones took over.
    pub(super) fn runs_from(&self, at: Lsn) -> (Incarnation, &[LogResume]) {
        split_runs(self.history.incarnation, &self.history.resumes, at)
    }

    /// From here on it is known which runs wrote the log; before, as long as segments are of the first of them.
    pub(super) fn runs_known_from(&self) -> Lsn {
        let first = self.history.resumes.first().map(|first| first.end);
        first.map_or(self.history.marker, |first| first.min(self.history.marker))
    }

    /// From here on a feed of a run that keeps the log shows all: from where on earlier runs kept it, too, or where this run
    /// took over.
    pub fn followed_from(&self) -> Lsn {
        let begun = self.history.resumes.last();
        let begun = begun.map_or(self.history.end, |last| last.resume);
        self.history.followed_from.unwrap_or(begun)
    }

    /// The same as the last run that wrote left it; none if it kept no log.
    pub fn was_followed_from(&self) -> Option<Lsn> {
        self.history.followed_from
    }

    /// Where replay found the end of the log.
    pub(super) fn found_end(&self) -> Lsn {
        self.history.end
    }

    /// Everything before this was durable when the log was opened, as it tells itself. Of a log that is only read nobody knows
    /// how much of the rest a cut of the power would take.
    pub fn found_durable(&self) -> Lsn {
        self.history.durable
    }

    /// How often watchers were told to look again: that the log is durable further, that it was closed, or
    /// something else that [`tell`](Self::tell) told. Take it before the look.
    pub fn told(&self) -> u64 {
        self.positions.told()
    }

    /// Blocks until watchers are told again after [`told`](Self::told) was taken, or for `patience`; may end before. Asks for
    /// no flush.
    pub fn wait_until_told(&self, told: u64, patience: Duration) {
        self.positions.wait_until_told(told, patience);
    }

    /// Lets every thread look again that waits in [`wait_until_told`](Self::wait_until_told).
    pub fn tell(&self) {
        self.positions.tell();
    }

    /// Claims all of the log if it is durable. Nothing may be appended meanwhile, and the tail is the end of a whole record.
    pub fn claim_all(&self) {
        let tail = self.tail();
        if self.durable() >= tail {
            self.positions.claim_upto(tail);
        }
    }
}
