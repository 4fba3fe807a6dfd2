//! Creation of a region: one record in the log, before all records of the region, so that no crash leaves a record
//! without its region. The next checkpoint of any kind takes the region into the catalogue.

use std::sync::Arc;

use kreon_base::{Attributes, Error, ErrorKind, Lsn, Result, planted};
use kreon_format::{RecordKind, dropped_value};

use super::gc::Gc;
use super::ground::Ground;
use crate::options::Durability;
use crate::regions::{RegionState, check_name};
use crate::state::MadeRegion;
use kreon_log::NewRecord;

/// Makes regions.
pub struct RegionMaker {
    on: Ground,
    gc: Arc<Gc>,
}

impl RegionMaker {
    /// Into `regions`.
    pub fn new(on: &Ground, gc: &Arc<Gc>) -> Self {
        Self {
            on: on.clone(),
            gc: Arc::clone(gc),
        }
    }

    /// The region called `name`; makes it if need be.
    pub fn region(&self, name: &str, durability: Durability) -> Result<Arc<RegionState>> {
        self.on.storage.check_open()?;
        let region = match self.on.regions.get(name) {
            Some(region) => region,
            None => {
                check_name(name)?;
                self.on.storage.check_writable()?;
                self.make_region(name)?
            }
        };
        // A thread that finds a region made just now waits for its record, too.
        if durability == Durability::Sync {
            let log = &self.on.storage.log;
            log.sync(region.made_end)
                .inspect_err(|error| self.on.storage.poison.set(error))?;
        }
        Ok(region)
    }

    fn make_region(&self, name: &str) -> Result<Arc<RegionState>> {
        loop {
            match self.try_make_region(name) {
                Err(error)
                    if error.kind() == ErrorKind::OutOfSpace
                        && !self.on.storage.made.is_used_up()
                        && self.gc.free_space_for(1)? => {}
                outcome => return outcome,
            }
        }
    }

    fn try_make_region(&self, name: &str) -> Result<Arc<RegionState>> {
        let mut next = self.on.storage.made.turn();
        if let Some(region) = self.on.regions.get(name) {
            return Ok(region);
        }
        let id = *next;
        let Some(after) = id.0.checked_add(1) else {
            return Err(Error::new(
                ErrorKind::OutOfSpace,
                "all region numbers were used",
            ));
        };
        let _inside = self.on.visibility.gate.enter();
        self.on.storage.check_open()?;
        let record = NewRecord {
            region: id,
            kind: RecordKind::MakeRegion,
            key: name.as_bytes(),
            value: &dropped_value(self.on.storage.made.dropped()),
            attributes: Attributes::NONE,
        };
        let end = self.log_region(&record)?;
        next.0 = after;
        let name: Arc<str> = name.into();
        self.on.storage.made.add(MadeRegion {
            id,
            name: Arc::clone(&name),
            end,
        });
        Ok(self.on.regions.insert(RegionState::new(id, name, end)))
    }

    /// Writes the record that makes a region; returns where it ends.
    fn log_region(&self, record: &NewRecord<'_>) -> Result<Lsn> {
        let log = &self.on.storage.log;
        planted!(RegionNotDurable => return Ok(log.tail()));
        let (_, end) = log.append_one(record)?;
        Ok(end)
    }
}
