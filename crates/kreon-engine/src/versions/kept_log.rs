//! Gives up log that is kept for the change feed, because space is scarce.

use kreon_base::{ErrorKind, Result, SEGMENT_BYTES};

use super::Versions;
use crate::checkpoint::kept_log::idle;

impl Versions {
    /// Gives up kept log, the oldest first, until new data could have so many segments, at once or when readers let go of what
    /// was given up. `true`: some was given up since the call, by this thread or another, and there is room at once; so a
    /// caller that tries again whenever this is true comes to an end.
    ///
    /// # Errors
    /// Those of a checkpoint, but for `OutOfSpace`.
    pub fn give_up_kept_for(&self, segments: u32) -> Result<bool> {
        let feed = &self.storage.feed;
        let before = feed.given_up_before();
        if feed.idle_bytes() == 0 {
            return Ok(false);
        }
        loop {
            let _changes = self.changes.lock();
            if feed.given_up_before() > before && self.has_room(segments)? {
                return Ok(true);
            }
            let (_, retired) = self.storage.views.waiting();
            if retired >= u64::from(segments) || !self.give_up(segments as usize)? {
                return Ok(false);
            }
        }
    }

    /// Gives up all log that is kept for the feed alone; whether there was any.
    ///
    /// # Errors
    /// Those of a checkpoint, but for `OutOfSpace`.
    pub fn give_up_all_kept(&self) -> Result<bool> {
        if self.storage.feed.idle_bytes() == 0 {
            return Ok(false);
        }
        let _changes = self.changes.lock();
        self.give_up(usize::MAX)
    }

    /// Gives up kept log if there is less room than for so many segments: for whoever cannot try again.
    ///
    /// # Errors
    /// Those of a checkpoint, but for `OutOfSpace`.
    pub fn relieve(&self, segments: u32) -> Result<()> {
        let is_scarce = || {
            let room = self.storage.allocator.lock().room_bytes();
            room < u64::from(segments) * SEGMENT_BYTES
        };
        match self.storage.feed.idle_bytes() > 0 && is_scarce() {
            true => self.give_up_kept_for(segments).map(drop),
            false => Ok(()),
        }
    }

    /// Gives up so many of the kept segments by a checkpoint; whether any. The caller holds the right to change the levels.
    fn give_up(&self, segments: usize) -> Result<bool> {
        let feed = &self.storage.feed;
        let idle = idle(&self.storage.allocator.lock(), feed.kept());
        let Some(last) = idle.get(segments.max(1) - 1).or(idle.last()) else {
            return Ok(false);
        };
        feed.give_up_before(last + 1);
        match self.install_ledger(|_| ()) {
            Err(error) if error.kind() == ErrorKind::OutOfSpace => return Ok(false),
            outcome => outcome?,
        }
        self.reclaim()?;
        Ok(true)
    }

    fn has_room(&self, segments: u32) -> Result<bool> {
        self.storage.allocator.lock().has_room(segments)
    }
}
