//! Drop of a region: its trees are retired, and the log records that they pointed at are dead.

use std::sync::Arc;

use kreon_base::{Error, ErrorKind, PageNo, Result};
use kreon_format::PagePointer;

use crate::level::Levels;
use crate::regions::Regions;
use crate::spill::Spilled;
use crate::spill::charges::Charges;
use crate::state::{Ledger, Storage};
use crate::tree::{self, Entry, Reference, Visitor};
use crate::tree_locks::TreeLocks;
use crate::versions::Versions;
use crate::visibility::Visibility;
use kreon_log::Log;

/// Drops regions.
pub struct RegionDropper {
    storage: Arc<Storage>,
    visibility: Arc<Visibility>,
    regions: Arc<Regions>,
    tree_locks: Arc<TreeLocks>,
    versions: Arc<Versions>,
}

impl RegionDropper {
    /// From `regions`.
    pub fn new(
        (storage, visibility): (&Arc<Storage>, &Arc<Visibility>),
        regions: &Arc<Regions>,
        tree_locks: &Arc<TreeLocks>,
        versions: &Arc<Versions>,
    ) -> Self {
        Self {
            storage: Arc::clone(storage),
            visibility: Arc::clone(visibility),
            regions: Arc::clone(regions),
            tree_locks: Arc::clone(tree_locks),
            versions: Arc::clone(versions),
        }
    }

    /// Drops the region called `name`.
    pub fn drop_region(&self, name: &str) -> Result<()> {
        self.storage.check_writable()?;
        let find = || {
            let missing = || format!("there is no region {name:?}");
            let found = self.regions.get(name);
            found.ok_or_else(|| Error::new(ErrorKind::NotFound, missing()))
        };
        // Merges of its trees end early: nothing needs their result.
        let id = find()?.id;
        let _dropping = self.tree_locks.begin_drop(id);
        let _changes = self.versions.lock_changes();
        let region = find()?;
        if region.id != id {
            return Err(Error::new(
                ErrorKind::Busy,
                format!("region {name:?} was dropped and made again meanwhile"),
            ));
        }
        let view = self.storage.views.load_full();
        let mut gone = Reached::new(&self.storage.log);
        for (nodes, record) in self
            .storage
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
        // From here on no write enters the region; writers inside the gate end first.
        {
            let _closed = self.visibility.gate.close();
            region.drop_for_all();
        }
        // Short-lived regions leave nothing in the log that the next opening must replay.
        let marker = self.versions.quiet_tail();
        let forget = |ledger: &mut Ledger| {
            ledger.regions.remove(region.id);
            ledger.advance(marker);
        };
        let committed = self.versions.install(change, forget, true);
        committed.inspect_err(|_| region.keep_after_all())?;
        // Before the name can be used again.
        let epoch = self.storage.ledger.lock().epoch;
        self.storage.made.note_drop(epoch);
        self.regions.remove(name);
        drop(view);
        self.versions.reclaim()
    }
}

/// Pages and live bytes that the trees of the region reach.
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
