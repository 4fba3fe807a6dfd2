//! Creation of a region: one record in the log, before all records of the region, so that no crash leaves a record
//! without its region. The next checkpoint of any kind takes the region into the catalogue.

use std::sync::Arc;

use kreon_base::{Attributes, Error, ErrorKind, Lsn, RegionOptions, Result, planted};
use kreon_format::{RecordKind, made_value};

use super::gc::Gc;
use super::ground::Ground;
use crate::compression;
use crate::options::Durability;
use crate::regions::{RegionState, check_name, check_options};
use crate::state::{MadeRegion, RegionEntry};
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

    /// The region called `name`; makes it with `options` if need be. One that exists keeps its own.
    pub fn region(
        &self,
        (name, options): (&str, &RegionOptions),
        durability: Durability,
    ) -> Result<Arc<RegionState>> {
        self.on.storage.check_open()?;
        let region = match self.on.regions.get(name) {
            Some(region) => region,
            None => {
                check_name(name)?;
                check_options(options)?;
                self.on.storage.check_writable()?;
                self.make_region(name, options)?
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

    fn make_region(&self, name: &str, options: &RegionOptions) -> Result<Arc<RegionState>> {
        loop {
            match self.try_make_region(name, options) {
                Err(error)
                    if error.kind() == ErrorKind::OutOfSpace
                        && !self.on.storage.made.is_used_up()
                        && self.gc.free_space_for(1)? => {}
                outcome => return outcome,
            }
        }
    }

    fn try_make_region(&self, name: &str, options: &RegionOptions) -> Result<Arc<RegionState>> {
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
            value: &made_value(self.on.storage.made.dropped(), options),
            attributes: Attributes::NONE,
        };
        let end = self.log_region(&record)?;
        next.0 = after;
        let name: Arc<str> = name.into();
        self.on.storage.made.add(MadeRegion {
            id,
            name: Arc::clone(&name),
            options: *options,
            end,
        });
        let region = RegionState::new(id, name, options, end);
        Ok(self.on.regions.insert(region))
    }

    /// Gives `region` other options, durably; they hold for writes and merges from now on.
    pub fn set_options(&self, region: &RegionState, options: &RegionOptions) -> Result<()> {
        check_options(options)?;
        if options.compression != region.own.compression() {
            compression::check(options.compression)?;
        }
        self.on.storage.check_writable()?;
        let _changes = self.on.versions.lock_changes();
        region.check()?;
        self.on.versions.install_ledger(|ledger| {
            if let Some(entry) = ledger.regions.get(region.id) {
                let entry = RegionEntry {
                    options: *options,
                    ..entry.clone()
                };
                ledger.regions.insert(region.id, entry);
            }
        })?;
        region.own.set(options);
        self.on.regions.note_growth_factor(options.growth_factor);
        Ok(())
    }

    /// Writes the record that makes a region; returns where it ends.
    fn log_region(&self, record: &NewRecord<'_>) -> Result<Lsn> {
        let log = &self.on.storage.log;
        planted!(RegionNotDurable => return Ok(log.tail()));
        let (_, end) = log.append_one(record)?;
        Ok(end)
    }
}
