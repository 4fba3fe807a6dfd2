//! How much space stays back for deletions, spills and checkpoints: arithmetic without I/O.
//!
//! The reserve is a number of backed free segments that only deletions and maintenance may use, so that a full store can still
//! spill, checkpoint and delete. It follows the worst case of the next spill:
//!
//! - A spill rewrites the leaves that entries of L0 fall into: a few pages per entry, but no more than the trees have.
//! - The log writes by *grants*: a grant covers some bytes behind the end of the log, counts the entries that fit into
//!   them, and is refused to new data where the reserve for these entries cannot be had.
//! - Merges of levels rewrite whole trees: all pages of regions with several trees are in reserve.
//! - Some pages for the catalogue, in proportion to the volume.
//!
//! Unused pages of tree segments count towards the reserve, because maintenance takes them first.

use kreon_base::{SEGMENT_BYTES, SEGMENT_PAGES};

use super::purpose::Purpose;
use super::segments::Segments;
use super::tuning::{
    COLLECTION_SEGMENTS, DELETION_SHARE, FIXED_PAGES_MAX, FIXED_PAGES_MIN, FIXED_PAGES_PER_SEGMENT,
    GRANT_SHARE, LEAST_RESERVE_SEGMENTS_MAX, LEAST_RESERVE_SEGMENTS_MIN, LEAST_RESERVE_SHARE,
    LOG_BYTES_PER_LEAF, PAGES_PER_ENTRY,
};

/// The shortest record of the log, with its header.
const RECORD_BYTES_MIN: u64 = 24;

/// What maintenance may need, as the store sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reserve {
    /// Pages of the trees that spills go into and that nothing is merged with.
    pub spilled_pages: u64,
    /// Pages of regions with several trees.
    pub merged_pages: u64,
    /// Pages that become free when the last reader has left them.
    pub soon_free_pages: u64,
    /// What L0s add to it.
    pub l0s: L0sReserve,
}

/// What maintenance may need for what L0s hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct L0sReserve {
    /// Entries of L0s.
    pub entries: u64,
    /// Pages for their leaves.
    pub pages: u64,
    /// Bytes that the log may take without another grant.
    pub granted_bytes: u64,
}

/// The size of the reserve.
#[derive(Default)]
pub struct SpaceReserve {
    pub needs: Reserve,
    /// Pages that maintenance took since the needs were last set: the reserve was for these.
    pub taken_pages: u64,
    /// A small store has no least reserve: see [`super::log_room`].
    pub is_small: bool,
}

impl SpaceReserve {
    pub fn set(&mut self, needs: Reserve) {
        self.needs = needs;
        self.taken_pages = 0;
    }

    /// Maintenance took pages.
    pub fn note_taken(&mut self, pages: u64) {
        self.taken_pages = self.taken_pages.saturating_add(pages);
    }

    /// Free segments that make up the reserve with the unused pages of tree segments.
    pub fn segments(&self, table: &Segments) -> u32 {
        self.missing(table, table.roomy_pages(), self.needs.merged_pages)
    }

    /// The same after `pages` unused ones of tree segments were taken.
    pub fn segments_without(&self, table: &Segments, pages: u64) -> u32 {
        let left = table.roomy_pages().saturating_sub(pages);
        self.missing(table, left, self.needs.merged_pages)
    }

    /// Free segments that spills alone need: neither merges, which can wait, nor the least reserve.
    pub fn segments_for_spills(&self, table: &Segments) -> u32 {
        self.segments_for_pages(table, table.roomy_pages(), 0)
    }

    /// Free segments that `purpose` leaves alone.
    pub fn untouchable(&self, table: &Segments, purpose: Purpose) -> u32 {
        let reserve = self.segments(table);
        let untouchable = match purpose {
            Purpose::Put => reserve,
            // Merges can wait, spills cannot.
            Purpose::Delete => {
                (reserve / DELETION_SHARE).min(self.missing(table, table.roomy_pages(), 0))
            }
            Purpose::Collection => reserve
                .saturating_sub(COLLECTION_SEGMENTS)
                .max(reserve.min(1)),
            Purpose::Maintenance => 0,
        };
        debug_assert!(
            untouchable <= reserve,
            "{purpose:?} leaves more alone than there is"
        );
        untouchable
    }

    /// Pages of the reserve that are neither for nodes nor for L0s.
    pub fn fixed_pages(&self, table: &Segments) -> u64 {
        let used = u64::from(table.used_count());
        (used * FIXED_PAGES_PER_SEGMENT).clamp(FIXED_PAGES_MIN, FIXED_PAGES_MAX)
    }

    /// Counts a grant of `bytes` to the log.
    pub fn add_grant(&mut self, bytes: u64) {
        self.needs.l0s.granted_bytes += bytes;
    }

    /// Takes back a grant that the reserve could not be had for.
    pub fn undo_grant(&mut self, bytes: u64) {
        let granted = &mut self.needs.l0s.granted_bytes;
        assert!(
            *granted >= bytes,
            "{bytes} bytes are taken back of {granted}"
        );
        *granted -= bytes;
    }

    /// Counts entries of L0s.
    pub fn add_entries(&mut self, entries: u64) {
        self.needs.l0s.entries += entries;
    }

    /// Takes back entries that the reserve could not be had for.
    pub fn undo_entries(&mut self, entries: u64) {
        let counted = &mut self.needs.l0s.entries;
        assert!(
            *counted >= entries,
            "{entries} entries are taken back of {counted}"
        );
        *counted -= entries;
    }

    /// Bytes that a grant covers beside what is asked for: the more L0s hold, the more.
    pub fn grant_bytes(&self) -> u64 {
        let l0s = &self.needs.l0s;
        let held = l0s.entries.saturating_mul(RECORD_BYTES_MIN) + l0s.granted_bytes;
        (held / GRANT_SHARE).min(SEGMENT_BYTES)
    }

    /// Free segments that the reserve needs beside `roomy` unused pages of tree segments.
    fn missing(&self, table: &Segments, roomy: u64, merged_pages: u64) -> u32 {
        self.segments_for_pages(table, roomy, merged_pages)
            .max(self.least_segments(table))
    }

    fn segments_for_pages(&self, table: &Segments, roomy: u64, merged_pages: u64) -> u32 {
        let (needs, l0s) = (&self.needs, &self.needs.l0s);
        let entries = l0s.entries + l0s.granted_bytes / RECORD_BYTES_MIN;
        let rewritten = entries.saturating_mul(PAGES_PER_ENTRY);
        let nodes = needs.spilled_pages.min(rewritten) + merged_pages;
        let leaves = l0s.pages + l0s.granted_bytes.div_ceil(LOG_BYTES_PER_LEAF);
        let maintenance = nodes + self.fixed_pages(table);
        let pages = maintenance.saturating_sub(needs.soon_free_pages + self.taken_pages) + leaves;
        let segments = pages.saturating_sub(roomy).div_ceil(SEGMENT_PAGES);
        segments.min(u64::from(u32::MAX)) as u32
    }

    fn least_segments(&self, table: &Segments) -> u32 {
        match self.is_small {
            true => 0,
            false => (table.used_count() / LEAST_RESERVE_SHARE)
                .clamp(LEAST_RESERVE_SEGMENTS_MIN, LEAST_RESERVE_SEGMENTS_MAX),
        }
    }
}
