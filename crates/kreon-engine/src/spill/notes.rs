//! What merges of trees report: pages that fell out of them, and live bytes by log segment.

use kreon_base::{LogOffset, PageNo, planted};
use kreon_format::fragment_bytes;

use super::charges::Charges;
use crate::state::Storage;
use crate::state::dead_records::has_bit;
use crate::tree::{Changes, Reference};

/// Collects what spills, merges of levels and loads report.
pub struct Notes<'a> {
    storage: &'a Storage,
    /// Change of live bytes by log segment.
    pub charges: Charges<'a>,
    /// Pages that the new trees do not reach.
    pub dropped: Vec<PageNo>,
    /// Records that the new trees do not point at, as far as they are known.
    pub dead: Vec<LogOffset>,
    /// The record that was added last.
    added: Option<LogOffset>,
}

/// Most dead records that are told: 2 MiB of memory. The others are not known to be dead.
const DEAD_MAX: usize = 1 << 18;

impl<'a> Notes<'a> {
    /// Nothing changed yet.
    pub fn new(storage: &'a Storage) -> Self {
        Self {
            storage,
            charges: Charges::new(&storage.log),
            dropped: Vec::new(),
            dead: Vec::new(),
            added: None,
        }
    }

    /// Adds what another worker collected.
    pub fn add(&mut self, other: Self) {
        self.dropped.extend(other.dropped);
        self.charges.add_all(other.charges);
        let room = DEAD_MAX.saturating_sub(self.dead.len());
        self.dead.extend(other.dead.into_iter().take(room));
    }
}

impl Changes for Notes<'_> {
    fn freed(&mut self, page: PageNo) {
        planted!(PagesReusedTooEarly => drop(self.storage.allocator.lock().release_pages(&[page])));
        self.dropped.push(page);
    }

    fn referenced(&mut self, record: Reference) {
        self.added = Some(record.offset);
        self.charges.add(&record);
    }

    fn dropped(&mut self, record: Reference) {
        self.charges.drop(&record);
        // After a crash the input has records that the tree has, too: those were added just before. Of deletions the order
        // is another.
        let is_value = record.value_bytes > 0;
        let extent = fragment_bytes(record.key_bytes as usize + record.value_bytes as usize);
        let is_gone = self.added != Some(record.offset);
        if is_value && is_gone && has_bit(extent) && self.dead.len() < DEAD_MAX {
            let offset = record.offset;
            planted!(LiveRecordNotedDead => let offset = self.added.unwrap_or(offset));
            self.dead.push(offset);
        }
    }
}
