//! One backup.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use kreon_base::{Error, Lsn, PAGE_BYTES, Result};
use kreon_format::{BackupManifest, BackupPage, BackupPiece};

use super::Tell;
use super::data::DataFile;
use super::kept::{self, bytes_of};
use super::lineage;
use super::log::{LogCopy, by_segment};
use super::moment::Moment;
use super::pace::Pace;
use super::pages::PageCopy;
use super::shelf::{Access, LOCK, Shelf};
use crate::state::Storage;

/// Settings of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupOptions {
    /// Most bytes read and copied in a second, on average; none: as fast as it goes.
    pub bytes_per_second: Option<u64>,
    /// How many backups stay on the shelf, this one included; at least 1.
    pub keep: u32,
}

impl Default for BackupOptions {
    fn default() -> Self {
        Self {
            bytes_per_second: None,
            keep: 1,
        }
    }
}

/// A backup that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupReport {
    /// Its number on the shelf, from 1 on.
    pub number: u32,
    /// The backup before on the shelf, whose pages it shares.
    pub before: Option<u32>,
    /// Bytes of the state: what a restore writes.
    pub bytes: u64,
    /// Bytes of pages and log that were written; the rest the shelf had.
    pub copied_bytes: u64,
    /// Bytes of the manifest.
    pub manifest_bytes: u64,
    /// Every write before is in the backup.
    pub log_end: Lsn,
}

/// Makes backups of an open store.
pub struct Backups {
    storage: Arc<Storage>,
}

impl Backups {
    /// Of the store on `storage`.
    pub fn new(storage: &Arc<Storage>) -> Self {
        Self {
            storage: Arc::clone(storage),
        }
    }

    /// See [`Engine::backup`](crate::Engine::backup); what is durable is in it. Everything before `acknowledged` is, which is
    /// the border of a record.
    pub fn run(
        &self,
        shelf: &dyn Shelf,
        options: &BackupOptions,
        acknowledged: Lsn,
        tell: Tell<'_>,
    ) -> Result<BackupReport> {
        let time = SystemTime::now().duration_since(UNIX_EPOCH);
        let _alone = shelf.open(LOCK, Access::Write)?;
        let newest = kept::numbers(shelf)?.last().copied();
        let before = newest
            .map(|number| kept::manifest(shelf, number))
            .transpose()?;
        if before
            .as_ref()
            .is_some_and(|before| before.superblock.store != self.storage.store)
        {
            return Err(Error::invalid("there are backups of another store"));
        }
        let number = newest.unwrap_or(0).checked_add(1);
        let number = number.ok_or_else(|| Error::invalid("all numbers of backups were used"))?;
        kept::sweep(shelf, number - 1)?;
        let moment = Moment::take(&self.storage, acknowledged)?;
        let is_open = || self.storage.check_open();
        let mut pace = Pace::new(tell, &is_open, moment.bytes(), options.bytes_per_second)?;
        let mut data = DataFile::new(shelf, number);
        let pages = self.copy_pages(&moment, before.as_ref(), &mut data, &mut pace)?;
        pace.step("log")?;
        // What another log has at the same place is not shared.
        let goes_on = match &before {
            Some(before) => lineage::goes_on(&self.storage, shelf, before, &moment.segments)?,
            None => false,
        };
        let before = before.filter(|_| goes_on);
        let (pieces, torn_bytes) = self.copy_log(&moment, before.as_ref(), &mut data, &mut pace)?;
        // If the store was closed meanwhile, another process may have written what was read last.
        self.storage.check_open()?;
        let manifest = BackupManifest {
            number,
            time_ms: time.map_or(0, |time| time.as_millis() as u64),
            superblock: moment.superblock,
            log_end: Lsn(moment.log_end.0 - u64::from(torn_bytes)),
            pages,
            pieces,
        };
        drop(moment);
        pace.step("manifest")?;
        let copied_bytes = data.finish()? * PAGE_BYTES as u64;
        let manifest_bytes = kept::publish(shelf, &manifest)?;
        pace.step("old backups")?;
        kept::prune(shelf, &manifest, options.keep)?;
        pace.finish()?;
        Ok(BackupReport {
            number,
            before: newest,
            bytes: bytes_of(&manifest),
            copied_bytes,
            manifest_bytes,
            log_end: manifest.log_end,
        })
    }

    fn copy_pages(
        &self,
        moment: &Moment,
        before: Option<&BackupManifest>,
        data: &mut DataFile<'_>,
        pace: &mut Pace<'_>,
    ) -> Result<Vec<BackupPage>> {
        let mut pages = PageCopy {
            storage: &self.storage,
            before: before.map_or(&[], |before| &before.pages),
            data,
            pace,
            pages: Vec::new(),
        };
        pages.all(moment)?;
        Ok(pages.pages)
    }

    fn copy_log(
        &self,
        moment: &Moment,
        before: Option<&BackupManifest>,
        data: &mut DataFile<'_>,
        pace: &mut Pace<'_>,
    ) -> Result<(Vec<BackupPiece>, u32)> {
        let mut log = LogCopy {
            storage: &self.storage,
            before: by_segment(before.map_or(&[], |before| &before.pieces)),
            before_end: before.map_or(Lsn(0), |before| before.log_end),
            data,
            pace,
            segments: &moment.segments,
            pieces: Vec::new(),
            torn_bytes: 0,
        };
        log.all()?;
        Ok((log.pieces, log.torn_bytes))
    }
}
