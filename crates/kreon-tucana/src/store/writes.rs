//! Writes and gets of keys of a region.

use kreon_base::{Error, ErrorKind, Lsn, Result};

use super::log_mark::REGION;
use super::options::Durability;
use super::region_key::with_tree_key;
use super::region_state::RegionState;
use super::shared::Shared;
use crate::log::Record;
use crate::tree::Written;

/// Attempts at a write that finds no space, or no frames, while others take what is freed for it.
const ATTEMPTS_MAX: usize = 64;

/// A write.
struct Change<'a> {
    region: &'a RegionState,
    /// That of the tree.
    key: &'a [u8],
    value: Option<&'a [u8]>,
}

impl Shared {
    /// Gives a key of a region a value, or deletes it. Returns whether it had a value.
    ///
    /// # Errors
    /// Those of [`put`](crate::Region::put).
    pub(super) fn write(
        &self,
        region: &RegionState,
        key: &[u8],
        value: Option<&[u8]>,
        durability: Durability,
    ) -> Result<bool> {
        with_tree_key(region.number, key, |key| {
            self.write_change(&Change { region, key, value }, durability)
        })
    }

    fn write_change(&self, change: &Change<'_>, durability: Durability) -> Result<bool> {
        let mut appended = None;
        let outcome = self.write_until_done(change, &mut appended);
        if !matches!(outcome, Ok(Some(_))) {
            self.leave_behind(appended)?;
        }
        let written = outcome?;
        self.write_full_segments()?;
        if durability == Durability::Sync {
            // Of a deletion that found nothing, what it saw becomes durable.
            let lsn = written.map_or_else(|| Lsn(self.log.tail().0 - 1), |written| written.lsn);
            self.make_durable(lsn)?;
        }
        Ok(written.is_some_and(|written| written.existed))
    }

    fn write_until_done(
        &self,
        change: &Change<'_>,
        appended: &mut Option<Lsn>,
    ) -> Result<Option<Written>> {
        let mut attempts = 0;
        loop {
            match self.write_once(change, appended) {
                Ok(written) => return Ok(written),
                Err(error) if attempts == ATTEMPTS_MAX => return Err(error),
                Err(error) => self.make_up_for(error)?,
            }
            attempts += 1;
        }
    }

    fn write_once(
        &self,
        change: &Change<'_>,
        appended: &mut Option<Lsn>,
    ) -> Result<Option<Written>> {
        self.keep_pace()?;
        let admit = || change.region.check();
        match change.value {
            None => self.tree.remove(change.key, appended, admit),
            Some(_) => {
                self.home.standby.allow_values()?;
                self.pages.stock()?;
                let record = Record {
                    region: REGION,
                    key: change.key,
                    value: change.value,
                };
                self.tree.write(&record, appended, admit).map(Some)
            }
        }
    }

    /// Lends the value of a key of a region to `use_value`.
    ///
    /// # Errors
    /// Those of [`get`](crate::Region::get).
    #[inline]
    pub(super) fn get_with<R>(
        &self,
        region: &RegionState,
        key: &[u8],
        use_value: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        region.check()?;
        let get = |key: &[u8]| self.tree.get_with(key, use_value);
        let found = with_tree_key(region.number, key, get)?;
        if found.is_none() {
            // A drop that has begun meanwhile deletes keys.
            region.check()?;
        }
        Ok(found)
    }

    /// After a write that failed: Ok if it is worth another try.
    ///
    /// # Errors
    /// The same error, if it is final; those of a commit.
    fn make_up_for(&self, error: Error) -> Result<()> {
        match error.kind() {
            _ if self.is_short_of_frames(&error) => self.commit(),
            ErrorKind::OutOfSpace if self.free_space()? => Ok(()),
            _ => Err(error),
        }
    }

    /// A write was refused, or a deletion found nothing at its last attempt. A record of it that was appended is in no tree, and a
    /// replay must not find it: a commit leaves it behind. Without one the store is poisoned, so that nobody makes the record
    /// durable.
    ///
    /// # Errors
    /// Those of the commit.
    fn leave_behind(&self, appended: Option<Lsn>) -> Result<()> {
        match appended {
            Some(lsn) if lsn >= self.commits.marker() => self.home.poison.note(self.commit()),
            _ => Ok(()),
        }
    }
}
