//! Drop of a region: its trees are retired, and the log records that they pointed at are dead.

use kreon_base::{Attributes, Error, ErrorKind, PageNo, Result};
use kreon_format::{PagePointer, RecordKind};
use kreon_log::NewRecord;

use super::ground::Ground;
use crate::level::{Levels, View};
use crate::regions::RegionState;
use crate::spill::Spilled;
use crate::spill::charges::Charges;
use crate::state::{Held, Ledger, Storage};
use crate::tree::{self, Entry, Reference, Visitor};

/// Drops regions.
pub struct RegionDropper {
    on: Ground,
}

impl RegionDropper {
    /// From `regions`.
    pub fn new(on: &Ground) -> Self {
        Self { on: on.clone() }
    }

    /// Drops the region called `name`.
    pub fn drop_region(&self, name: &str) -> Result<()> {
        self.on.storage.check_writable()?;
        let find = || {
            let missing = || format!("there is no region {name:?}");
            let found = self.on.regions.get(name);
            found.ok_or_else(|| Error::new(ErrorKind::NotFound, missing()))
        };
        // Merges of its trees end early: nothing needs their result.
        let id = find()?.id;
        let _dropping = self.on.tree_locks.begin_drop(id);
        // For the notice: a drop is to free space.
        self.on.versions.relieve(1)?;
        let _changes = self.on.versions.lock_changes();
        let region = find()?;
        if region.id != id {
            return Err(Error::new(
                ErrorKind::Busy,
                format!("region {name:?} was dropped and made again meanwhile"),
            ));
        }
        let view = self.on.storage.views.load_full();
        let gone = self.reached(&view, &region)?;
        let mut levels = Levels::clone(&view.levels);
        levels.remove(region.id);
        let change = Spilled {
            dropped: gone.pages,
            charges: gone.charges.finish(),
            ..Spilled::nothing(levels)
        };
        // From here on no write enters the region; writers inside the gate end first.
        {
            let _closed = self.on.visibility.gate.close();
            region.drop_for_all();
        }
        let held = self.tell_feed(&region);
        let _held = held.inspect_err(|_| region.keep_after_all())?;
        // Short-lived regions leave nothing in the log that the next opening must replay.
        let marker = self.on.versions.quiet_tail();
        let forget = |ledger: &mut Ledger| {
            ledger.regions.remove(region.id);
            ledger.advance(marker);
        };
        let committed = self.on.versions.install(change, forget, true);
        committed.inspect_err(|_| region.keep_after_all())?;
        // Before the name can be used again.
        let epoch = self.on.storage.ledger.lock().epoch;
        self.on.storage.made.note_drop(epoch);
        self.on.regions.remove(name);
        drop(view);
        self.on.versions.reclaim()
    }
}

impl RegionDropper {
    /// What the trees of `region` reach. An index that cannot be read or is damaged is an error.
    fn reached(&self, view: &View, region: &RegionState) -> Result<Reached<'_>> {
        let (storage, name) = (&self.on.storage, &region.name);
        let mut reached = Reached {
            pages: Vec::new(),
            charges: Charges::new(&storage.log),
        };
        let nodes = storage.nodes(view, region.id);
        for (nodes, record) in nodes.iter().zip(view.levels.of(region.id)) {
            let findings = tree::verify(nodes, record, region.id, &mut reached);
            if let Some(error) = findings.unread {
                return Err(error.within(format!("drop region {name:?}")));
            }
            if let Some(problem) = findings.problems.into_iter().next() {
                return Err(Error::corruption(problem).within(format!(
                    "region {name:?} cannot be dropped, its index is damaged"
                )));
            }
        }
        Ok(reached)
    }

    /// Writes a durable notice for the change feed. No write of the region follows it, unless the drop fails. The feed stops in
    /// front of it until the drop has ended.
    fn tell_feed(&self, region: &RegionState) -> Result<Option<Held<'_>>> {
        let Storage {
            feed, log, poison, ..
        } = self.on.storage.as_ref();
        if !feed.is_on() {
            return Ok(None);
        }
        let notice = NewRecord {
            region: region.id,
            kind: RecordKind::DropRegion,
            key: region.name.as_bytes(),
            value: b"",
            attributes: Attributes::NONE,
        };
        let (held, (_, end)) = {
            let _inside = self.on.visibility.gate.enter();
            let held = feed.hold(log, poison);
            (held, log.append_one(&notice)?)
        };
        log.sync(end)
            .inspect_err(|error| self.on.storage.poison.set(error))?;
        Ok(Some(held))
    }
}

/// Pages and live bytes that the trees of the region reach.
struct Reached<'a> {
    pages: Vec<PageNo>,
    charges: Charges<'a>,
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
