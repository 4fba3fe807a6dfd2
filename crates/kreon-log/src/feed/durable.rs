//! What a log knows of its runs and of its durable end.

use std::time::Duration;

use kreon_base::{Incarnation, Lsn};
use kreon_format::LogResume;
use kreon_sync::Ordering;

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

    /// From here on every run kept the log for a feed, as far as the last one to write tells; none if that kept no log.
    pub fn followed_from(&self) -> Option<Lsn> {
        match self.followed.load(Ordering::Acquire) {
            0 => None,
            from => Some(Lsn(from)),
        }
    }

    /// A feed begins at `from`, behind a durable record of its own: at no position that an earlier feed has shown.
    pub fn begin_following(&self, from: Lsn) {
        self.followed.store(from.0, Ordering::Release);
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
