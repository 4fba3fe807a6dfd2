//! Making a region: a record of the log. What is written to the region later stands behind it, so whatever a crash leaves
//! of the log, no record lacks its region. The next checkpoint, of whatever kind, takes the region into the catalogue.

use std::sync::Arc;

use kreon_base::{Bug, Error, ErrorKind, Result};
use kreon_format::{RecordKind, dropped_value};

use super::collect::is_full;
use super::core::Core;
use super::region::{RegionState, check_name};
use crate::log::NewRecord;
use crate::options::Durability;
use crate::state::MadeRegion;

impl Core {
    /// The region called `name`; makes it if need be.
    pub fn region(
        self: &Arc<Self>,
        name: &str,
        durability: Durability,
    ) -> Result<Arc<RegionState>> {
        self.check_open()?;
        let region = match self.regions.get(name) {
            Some(region) => region,
            None => {
                check_name(name)?;
                self.check_writable()?;
                self.make_region(name)?
            }
        };
        // Who finds a region that another has just made waits for its record, too.
        if durability == Durability::Sync {
            let log = &self.parts.log;
            log.sync(region.made_end)
                .inspect_err(|error| self.parts.poison.set(error))?;
        }
        Ok(region)
    }

    fn make_region(self: &Arc<Self>, name: &str) -> Result<Arc<RegionState>> {
        loop {
            match self.try_make_region(name) {
                Err(error)
                    if is_full(&error) && !self.parts.made.is_used_up() && self.relieve(1)? => {}
                outcome => return outcome,
            }
        }
    }

    fn try_make_region(&self, name: &str) -> Result<Arc<RegionState>> {
        let mut next = self.parts.made.turn();
        if let Some(region) = self.regions.get(name) {
            return Ok(region);
        }
        let id = *next;
        let Some(after) = id.0.checked_add(1) else {
            return Err(Error::new(
                ErrorKind::OutOfSpace,
                "all region numbers were used",
            ));
        };
        let _inside = self.gate.enter();
        self.check_open()?;
        let record = NewRecord {
            region: id,
            kind: RecordKind::MakeRegion,
            key: name.as_bytes(),
            value: &dropped_value(self.parts.made.dropped()),
        };
        let log = &self.parts.log;
        let end = match Bug::RegionNotDurable.is_planted() {
            true => log.tail(),
            false => log.append_one(&record)?.1,
        };
        next.0 = after;
        let name: Arc<str> = name.into();
        self.parts.made.add(MadeRegion {
            id,
            name: Arc::clone(&name),
            end,
        });
        Ok(self.regions.insert(RegionState::new(id, name, end)))
    }
}
