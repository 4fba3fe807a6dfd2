//! How much space stays back for deletions, spills and checkpoints.
//!
//! The reserve follows what can be asked of it. A spill rewrites the leaves that entries of L0 fall into, so few entries
//! need little however large the trees are. The log therefore writes by *grants*: a grant covers some bytes behind the end
//! of the log, counts the entries that fit into them, and is refused to new data where the reserve for them cannot be had.
//! Merges of levels rewrite whole trees: where a region has several, all of their pages are in reserve. The rest grows with
//! the volume.

use kreon_base::{Error, ErrorKind, Result, SEGMENT_BYTES, SEGMENT_PAGES};

use super::allocator::{Allocator, Purpose};

/// The shortest record of the log, with its header.
const RECORD_BYTES_MIN: u64 = 24;

/// An entry may have its leaf, a small neighbour of that and an index node written anew.
const PAGES_PER_ENTRY: u64 = 3;

/// A page of leaves takes the entries of so many bytes of the log at the least.
const LOG_BYTES_PER_LEAF: u64 = 3 << 10;

/// Segments of the reserve that garbage collection may fill: with one more it can free any segment that
/// is not full of live records.
const COLLECTION_SEGMENTS: u32 = 3;

/// Pages for the catalogue and whatever else upkeep needs: so many for each segment in use, within these bounds.
const PAGES_PER_SEGMENT: u64 = 64;
const FIXED_PAGES: (u64, u64) = (96, 4 * SEGMENT_PAGES);

/// Segments that stay in reserve at the least: a sixth of those in use, within these bounds.
const SEGMENTS_SHARE: u32 = 6;
const SEGMENTS_MIN: (u32, u32) = (2, 5);

/// What upkeep may need, as the store sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reserve {
    /// Pages of the trees that spills go into and that nothing is merged with.
    pub spilled_pages: u64,
    /// Pages of regions with several trees.
    pub merged_pages: u64,
    /// Pages that become free as soon as no reader reaches them.
    pub soon_free_pages: u64,
    /// See [`Allocator::set_reserve_of_l0s`].
    pub l0s: L0sReserve,
}

/// What upkeep may need for what L0s hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct L0sReserve {
    /// Entries of L0s.
    pub entries: u64,
    /// Pages for their leaves.
    pub pages: u64,
    /// Bytes that the log may take without another grant.
    pub granted_bytes: u64,
}

impl Allocator {
    /// Sets the reserve. It is filled as far as the device has room.
    pub fn set_reserve(&mut self, reserve: Reserve) {
        self.reserve = reserve;
        self.taken_pages = 0;
        // A reserve that cannot be filled now is no error: allocations will say so when it matters.
        let _ = self.back_free_segments(self.reserve_segments());
    }

    /// The part of the reserve for what is in L0s. Changes often: filled by whoever takes a segment or a grant next.
    pub fn set_reserve_of_l0s(&mut self, l0s: L0sReserve) {
        self.reserve.l0s = l0s;
    }

    /// Upkeep took pages: that is what the reserve was for, until it is set anew.
    pub(super) fn note_taken(&mut self, pages: u64) {
        self.taken_pages = self.taken_pages.saturating_add(pages);
    }

    /// Free segments that make up the reserve with the unused pages of tree segments.
    pub(super) fn reserve_segments(&self) -> u32 {
        self.missing_segments(self.roomy_pages, self.reserve.merged_pages)
    }

    /// Free segments that the reserve needs beside so many unused pages of tree segments.
    fn missing_segments(&self, roomy: u64, merged_pages: u64) -> u32 {
        self.segments_of_pages(roomy, merged_pages)
            .max(self.least_segments())
    }

    /// The same without the least that stays in any case.
    fn segments_of_pages(&self, roomy: u64, merged_pages: u64) -> u32 {
        let Reserve {
            spilled_pages,
            soon_free_pages,
            l0s,
            ..
        } = self.reserve;
        let entries = l0s.entries + l0s.granted_bytes / RECORD_BYTES_MIN;
        let nodes = spilled_pages.min(entries.saturating_mul(PAGES_PER_ENTRY)) + merged_pages;
        let leaves = l0s.pages + l0s.granted_bytes.div_ceil(LOG_BYTES_PER_LEAF);
        let pages = (nodes + self.fixed_pages()).saturating_sub(soon_free_pages + self.taken_pages)
            + leaves;
        let segments = pages.saturating_sub(roomy).div_ceil(SEGMENT_PAGES);
        segments.min(u64::from(u32::MAX)) as u32
    }

    /// Pages of the reserve that are neither for nodes nor for L0s.
    pub(super) fn fixed_pages(&self) -> u64 {
        let used = u64::from(self.used_segments());
        (used * PAGES_PER_SEGMENT).clamp(FIXED_PAGES.0, FIXED_PAGES.1)
    }

    fn least_segments(&self) -> u32 {
        match self.is_small {
            true => 0,
            false => (self.used_segments() / SEGMENTS_SHARE).clamp(SEGMENTS_MIN.0, SEGMENTS_MIN.1),
        }
    }

    /// Segments that are in use.
    pub(super) fn used_segments(&self) -> u32 {
        self.segment_count() - self.free.len() as u32
    }

    /// Free segments that `purpose` leaves alone.
    pub(super) fn untouchable(&self, purpose: Purpose) -> u32 {
        let reserve = self.reserve_segments();
        match purpose {
            Purpose::Put => reserve,
            // Merges can wait, spills cannot.
            Purpose::Delete => (reserve / 2).min(self.missing_segments(self.roomy_pages, 0)),
            Purpose::Collection => reserve
                .saturating_sub(COLLECTION_SEGMENTS)
                .max(reserve.min(1)),
            Purpose::Upkeep => 0,
        }
    }

    /// Unused pages of tree segments are part of the reserve: new data takes none of them that free segments do not
    /// make up for.
    pub(super) fn check_room_for_pages(&mut self, pages: u64, purpose: Purpose) -> Result<()> {
        if purpose == Purpose::Upkeep || self.roomy_pages == 0 {
            return Ok(());
        }
        let left = self.roomy_pages.saturating_sub(pages);
        let needed = self.missing_segments(left, self.reserve.merged_pages);
        self.back_free_segments(needed)?;
        match self.free_backed >= needed {
            true => Ok(()),
            false => Err(out_of_space("new data")),
        }
    }

    /// Counts another grant of `bytes`, unless the reserve for its entries cannot be had.
    pub(super) fn grant(&mut self, bytes: u64, purpose: Purpose) -> Result<()> {
        self.reserve.l0s.granted_bytes += bytes;
        let needed = self.untouchable(purpose);
        let filled = self.back_free_segments(needed);
        if filled.is_ok() && self.free_backed >= needed {
            return Ok(());
        }
        self.reserve.l0s.granted_bytes -= bytes;
        filled?;
        Err(out_of_space_for(purpose))
    }

    /// Counts `entries` more in L0s, if the reserve for them can be had; whether it can.
    ///
    /// # Errors
    /// `Io` of the device.
    pub fn grant_entries(&mut self, entries: u64) -> Result<bool> {
        // Copies may take of what stays in any case.
        let reserve = |this: &Self| this.segments_of_pages(this.roomy_pages, 0);
        let before = reserve(self);
        self.reserve.l0s.entries += entries;
        let needed = reserve(self);
        if needed > before && self.free_backed < needed {
            self.back_free_segments(needed)?;
            if self.free_backed < needed {
                self.reserve.l0s.entries -= entries;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What new grants go by: the more L0s hold, the more.
    pub(super) fn grant_bytes(&self) -> u64 {
        let l0s = &self.reserve.l0s;
        let held = l0s.entries.saturating_mul(RECORD_BYTES_MIN) + l0s.granted_bytes;
        (held / 2).min(SEGMENT_BYTES)
    }
}

pub(super) fn out_of_space_for(purpose: Purpose) -> Error {
    out_of_space(match purpose {
        Purpose::Put => "new data",
        Purpose::Delete => "deletions",
        Purpose::Collection => "moved records",
        Purpose::Upkeep => "a spill or checkpoint",
    })
}

pub(super) fn out_of_space(what: &str) -> Error {
    Error::new(
        ErrorKind::OutOfSpace,
        format!("the volume has no room left for {what}; delete data or give it more space"),
    )
}
