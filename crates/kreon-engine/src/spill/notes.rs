//! What merges of trees report: pages that fell out of them, and live bytes by log segment.

use kreon_base::{PageNo, planted};

use super::charges::Charges;
use crate::state::Storage;
use crate::tree::{Changes, Reference};

/// Collects what spills, merges of levels and loads report.
pub struct Notes<'a> {
    storage: &'a Storage,
    /// Change of live bytes by log segment.
    pub charges: Charges<'a>,
    /// Pages that the new trees do not reach.
    pub dropped: Vec<PageNo>,
}

impl<'a> Notes<'a> {
    /// Nothing changed yet.
    pub fn new(storage: &'a Storage) -> Self {
        Self {
            storage,
            charges: Charges::new(&storage.log),
            dropped: Vec::new(),
        }
    }

    /// Adds what another worker collected.
    pub fn add(&mut self, other: Self) {
        self.dropped.extend(other.dropped);
        self.charges.add_all(other.charges);
    }
}

impl Changes for Notes<'_> {
    fn freed(&mut self, page: PageNo) {
        planted!(PagesReusedTooEarly => drop(self.storage.allocator.lock().release_pages(&[page])));
        self.dropped.push(page);
    }

    fn referenced(&mut self, record: Reference) {
        self.charges.add(&record);
    }

    fn dropped(&mut self, record: Reference) {
        self.charges.drop(&record);
    }
}
