//! Dropping a region: its trees go, and what they pointed at in the log dies.

use std::sync::Arc;

use kreon_base::{Error, ErrorKind, PageNo, Result};
use kreon_format::PagePointer;

use super::core::Core;
use crate::level::Levels;
use crate::log::Log;
use crate::spill::Spilled;
use crate::spill::charges::Charges;
use crate::state::Ledger;
use crate::tree::{self, Entry, Reference, Visitor};

impl Core {
    /// Drops the region called `name`.
    pub fn drop_region(&self, name: &str) -> Result<()> {
        self.check_writable()?;
        let find = || {
            let missing = || format!("there is no region {name:?}");
            let found = self.regions.get(name);
            found.ok_or_else(|| Error::new(ErrorKind::NotFound, missing()))
        };
        // What is being made of its trees is for nobody.
        let id = find()?.id;
        let _dropping = self.holds.begin_drop(id);
        let _upkeep = self.upkeep.lock();
        let region = find()?;
        if region.id != id {
            return Err(Error::new(
                ErrorKind::Busy,
                format!("region {name:?} was dropped and made again meanwhile"),
            ));
        }
        let view = self.parts.views.load_full();
        let mut gone = Reached::new(&self.parts.log);
        for (nodes, record) in self
            .nodes(&view, region.id)
            .iter()
            .zip(view.levels.of(region.id))
        {
            let findings = tree::verify(nodes, record, region.id, &mut gone);
            if let Some(error) = findings.unread {
                return Err(error.within(format!("drop region {name:?}")));
            }
            if let Some(problem) = findings.problems.into_iter().next() {
                return Err(Error::corruption(problem).within(format!(
                    "region {name:?} cannot be dropped, its index is damaged"
                )));
            }
        }
        let mut levels = Levels::clone(&view.levels);
        levels.remove(region.id);
        let (dropped, charges) = (gone.pages, gone.charges.finish());
        let change = Spilled {
            levels,
            kept: Vec::new(),
            dropped,
            charges,
        };
        // From here on no write enters the region; those that are inside are let out first.
        {
            let _closed = self.gate.close();
            region.drop_for_all();
        }
        // Regions that come and go leave nothing in the log that the next opening has to replay.
        let marker = self.quiet_tail();
        let forget = |ledger: &mut Ledger| {
            ledger.regions.remove(region.id);
            ledger.advance(marker);
        };
        let committed = self.commit_spill(change, forget, true);
        committed.inspect_err(|_| region.keep_after_all())?;
        // Before the name can be given again.
        let epoch = self.parts.ledger.lock().epoch;
        self.parts.made.note_drop(epoch);
        self.regions.remove(name);
        drop(view);
        self.give_back()
    }
}

/// What the trees of the region reach.
struct Reached<'a> {
    pages: Vec<PageNo>,
    charges: Charges<'a>,
}

impl<'a> Reached<'a> {
    fn new(log: &'a Arc<Log>) -> Self {
        Self {
            pages: Vec::new(),
            charges: Charges::new(log),
        }
    }
}

impl Visitor for Reached<'_> {
    fn page(&mut self, pointer: &PagePointer, _level: u8) -> bool {
        self.pages.push(pointer.page);
        true
    }

    fn entry(&mut self, entry: Entry<'_>) {
        if let Some(record) = Reference::of(entry.key.len() as u32, entry.payload) {
            self.charges.drop(&record);
        }
    }
}
