//! What a salvage takes and tells.

use kreon_base::{Epoch, PageNo, SegmentId};

/// What is wanted of a salvage.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SalvageOptions {
    /// Where the current value of a key is lost, take an older one if there is one.
    pub stale_values: bool,
}

/// How far a salvage is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SalvageProgress {
    /// What is being done.
    pub step: &'static str,
    /// Pairs and changes that were written into the target so far.
    pub written: u64,
}

/// What a damaged page was.
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
    /// Where it stands.
    pub page: PageNo,
    /// What it should be.
    pub role: PageRole,
}

/// Bytes of the log that hold no whole record, though writes were durable there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogHole {
    /// The segment on the volume; none: it is not known which one it was.
    pub segment: Option<SegmentId>,
    /// Its place in the log.
    pub sequence: u64,
    /// Where the hole starts, from the start of that segment.
    pub within_segment: u32,
    /// Bytes of the log up to the next whole record, which may stand in a later segment.
    pub bytes: u64,
}

/// Keys from `start` on and before `end`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostRange {
    /// First key.
    pub start: Vec<u8>,
    /// First key behind it; none: all that follow.
    pub end: Option<Vec<u8>>,
}

/// What became of one region.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SalvagedRegion {
    /// Its name in the target.
    pub name: String,
    /// Pairs that the target holds.
    pub pairs: u64,
    /// Entries that the index of the last checkpoint had and that no readable leaf holds. Some may
    /// have come back from the log: so many are lost at most. None: not known.
    pub missing_entries: Option<u64>,
    /// Ranges in which pairs are missing. What the target holds there is current.
    pub lost_ranges: Vec<LostRange>,
    /// Keys whose current value cannot be read, the first of them; of a long key its first 1024
    /// bytes. They are not in the target, unless older values were asked for.
    pub lost_keys: Vec<Vec<u8>>,
    /// How many more such keys there are.
    pub more_lost_keys: u64,
    /// Changes that were taken from the log.
    pub log_changes: u64,
    /// Older values that were taken in place of lost ones (`stale_values`), or that could have been.
    pub stale_values: u64,
}

/// What a salvage found, took and lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SalvageReport {
    /// The durable state that was salvaged; none: no catalogue of the last checkpoint could be read,
    /// and the state was put together from leaves and log.
    pub epoch: Option<Epoch>,
    /// By name.
    pub regions: Vec<SalvagedRegion>,
    /// Pages that do not verify, the first of them. A damaged page is no loss where a second copy or
    /// the log made up for it.
    pub damaged_pages: Vec<DamagedPage>,
    /// How many more there are.
    pub more_damaged_pages: u64,
    /// Unreadable bytes of the log whose writes are lost. Keys written there have their values from
    /// before, or none; what was written later is salvaged.
    pub log_holes: Vec<LogHole>,
    /// Records that are whole but may belong to a batch whose beginning is in a hole: left out.
    pub cut_records: u64,
    /// Bytes of log with whole records behind what looks like the end of the log, left out as an open would. A
    /// crash leaves such a tail, which nobody was promised; damage to the last synced writes looks the
    /// same.
    pub unproven_tail_bytes: u64,
    /// The log ends where the source cannot be read: writes behind that may be lost.
    pub unread_log_end: bool,
    /// Deleted pairs and old values may be back: nothing on the volume tells.
    pub may_be_stale: bool,
    /// Older values were taken where current ones are lost.
    pub took_stale_values: bool,
    /// What else a person should know.
    pub notes: Vec<String>,
}

impl SalvagedRegion {
    /// Whether nothing of it is known to be lost.
    pub fn is_complete(&self) -> bool {
        self.lost_ranges.is_empty() && self.lost_keys.is_empty() && self.more_lost_keys == 0
    }
}

impl SalvageReport {
    /// Whether the target holds all that the source held, and nothing else.
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
