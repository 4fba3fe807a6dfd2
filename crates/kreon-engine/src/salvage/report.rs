//! Options, progress and report of a salvage.

use kreon_base::{Epoch, PageNo, SegmentId};

/// Options of a salvage.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SalvageOptions {
    /// Take an older value, if there is one, for a key whose current value is lost. Default: false.
    pub stale_values: bool,
}

/// Progress of a salvage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SalvageProgress {
    /// The current step.
    pub step: &'static str,
    /// Changes written into the target so far.
    pub written: u64,
}

/// The role of a damaged page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PageRole {
    /// One of the four superblock slots.
    Superblock,
    /// A page of the catalogue.
    Catalogue,
    /// The bitmap block of a group.
    Bitmap,
    /// A leaf of a tree.
    Leaf,
    /// An index node of a tree.
    Index,
    /// The first page of a log segment.
    LogHeader,
}

/// A page that does not verify.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DamagedPage {
    /// Its number on the volume.
    pub page: PageNo,
    /// Its expected role.
    pub role: PageRole,
}

/// A stretch of the log without whole records, although writes were durable there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogHole {
    /// The segment on the volume; none: unknown.
    pub segment: Option<SegmentId>,
    /// The sequence of the segment in the log.
    pub sequence: u64,
    /// Start of the hole, in bytes from the start of the segment.
    pub within_segment: u32,
    /// Bytes of the log up to the next valid fragment, which may be in a later segment.
    pub bytes: u64,
}

/// The keys from `start` up to, not including, `end`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostRange {
    /// First key.
    pub start: Vec<u8>,
    /// End, exclusive; none: unbounded.
    pub end: Option<Vec<u8>>,
}

/// The result for one region.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SalvagedRegion {
    /// Its name in the target.
    pub name: String,
    /// Number of pairs in the target.
    pub pairs: u64,
    /// Entries of the last checkpoint's trees that no readable leaf holds. An upper bound of the loss, because some may
    /// have been restored from the log. None: unknown.
    pub missing_entries: Option<u64>,
    /// Ranges with missing pairs. Pairs of the target in them are current, unless older values were asked for.
    pub lost_ranges: Vec<LostRange>,
    /// Keys with an unreadable current value, up to about 8 MiB of them; of a long key its first 1024 bytes. They are
    /// not in the target, unless older values were asked for.
    pub lost_keys: Vec<Vec<u8>>,
    /// Number of further such keys.
    pub more_lost_keys: u64,
    /// Changes taken from the log.
    pub log_changes: u64,
    /// Records with older values that were taken in place of lost ones (`stale_values`), or could have been.
    pub stale_values: u64,
}

/// The report of a salvage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SalvageReport {
    /// The epoch of the salvaged checkpoint; none: its catalogue was unreadable, and the state comes from leaves and
    /// log.
    pub epoch: Option<Epoch>,
    /// Results by region, sorted by name.
    pub regions: Vec<SalvagedRegion>,
    /// The first 10,000 damaged pages. A damaged page is no loss if a second copy or the log replaced it.
    pub damaged_pages: Vec<DamagedPage>,
    /// Number of further damaged pages.
    pub more_damaged_pages: u64,
    /// Holes of the log, with lost writes. Keys written there keep their earlier values or none; later writes are
    /// salvaged.
    pub log_holes: Vec<LogHole>,
    /// Whole records that were skipped, because their batch may begin in a hole.
    pub cut_records: u64,
    /// Bytes of log with whole records behind the apparent end of the log; skipped, as by an open. A crash leaves such
    /// a tail of writes that were not durable, but damage to the last synced writes looks the same.
    pub unproven_tail_bytes: u64,
    /// The log ends at an unreadable part of the source, so later writes may be lost.
    pub unread_log_end: bool,
    /// Deleted pairs and old values may have reappeared; the volume does not show which.
    pub may_be_stale: bool,
    /// Older values were taken in place of lost ones.
    pub took_stale_values: bool,
    /// Further remarks for the user.
    pub notes: Vec<String>,
}

impl SalvagedRegion {
    /// Whether no loss in this region is known.
    pub fn is_complete(&self) -> bool {
        self.lost_ranges.is_empty() && self.lost_keys.is_empty() && self.more_lost_keys == 0
    }
}

impl SalvageReport {
    /// Whether the target holds exactly the content of the source.
    pub fn is_complete(&self) -> bool {
        let is_current = !self.may_be_stale && !self.took_stale_values;
        is_current
            && self.log_holes.is_empty()
            && self.cut_records == 0
            && !self.unread_log_end
            && self.unproven_tail_bytes == 0
            && self.regions.iter().all(SalvagedRegion::is_complete)
    }

    pub(super) fn is_older_than_log(&mut self) {
        if !self.may_be_stale {
            self.may_be_stale = true;
            self.notes.push(
                "the newest checkpoint that can be read is older than the log: the device lost newer \
                 superblocks or put an old one back, and what they acknowledged may be missing"
                    .to_owned(),
            );
        }
    }

    pub(super) fn damaged(&mut self, page: PageNo, role: PageRole) {
        const DAMAGED_MAX: usize = 10_000;
        if self.damaged_pages.len() < DAMAGED_MAX {
            self.damaged_pages.push(DamagedPage { page, role });
        } else {
            self.more_damaged_pages += 1;
        }
    }
}
