//! The office of a primary, as requests use it.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};

use kreon_base::{Error, ErrorKind, Result};
use kreon_engine::{Durability, Engine, RegionState};
use kreon_replica::drive::Serving;
use kreon_replica::machine::{Known, Term, Version};
use kreon_replica::mirror::Mirror;
use kreon_sync::{AtomicBool, Mutex, Ordering, RwLock};

use super::holds::Holds;

/// The office of a primary, in one term.
pub struct Office {
    pub term: Term,
    pub engine: Arc<Engine>,
    /// What sends its log, once that was asked for.
    pub mirror: OnceLock<Weak<Mirror>>,
    takes_writes: AtomicBool,
    holds: RwLock<Arc<Holds>>,
    regions: RwLock<HashMap<String, Arc<RegionState>>>,
    /// Held while a region is dropped or made: a table that comes again after a drop gets a new one.
    making: Mutex<()>,
}

impl Office {
    pub fn new(serving: Serving) -> Self {
        let holds = Holds::of(&serving.known);
        Self {
            term: serving.term,
            engine: serving.engine,
            mirror: OnceLock::new(),
            takes_writes: AtomicBool::new(serving.takes_writes),
            holds: RwLock::new(Arc::new(holds)),
            regions: RwLock::default(),
            making: Mutex::new(()),
        }
    }

    pub fn takes_writes(&self) -> bool {
        self.takes_writes.load(Ordering::Acquire)
    }

    pub fn set_takes_writes(&self, takes: bool) {
        self.takes_writes.store(takes, Ordering::Release);
    }

    /// Which keys it has.
    pub fn holds(&self) -> Arc<Holds> {
        Arc::clone(&self.holds.read())
    }

    pub fn configured(&self, known: &Known) {
        let mut held = self.holds.write();
        *held = Arc::new(held.next(known));
    }

    /// The store's region of a table; none if nothing was written to it.
    pub fn existing(&self, table: &str) -> Result<Option<Arc<RegionState>>> {
        if let Some(region) = self.regions.read().get(table) {
            return Ok(Some(Arc::clone(region)));
        }
        match self.engine.existing_region(table) {
            Ok(region) => {
                self.keep(&region);
                Ok(Some(region))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The same, made if need be: as a write before all that are written to it.
    pub fn region(&self, table: &str) -> Result<Arc<RegionState>> {
        if let Some(region) = self.regions.read().get(table) {
            return Ok(Arc::clone(region));
        }
        let _making = self.making.lock();
        // A writer that was slow does not make it again after its drop.
        if !self.holds().serves(table) {
            let text = format!("table {table:?} was dropped");
            return Err(Error::new(ErrorKind::Closed, text));
        }
        let region = self.engine.region_with(table, Durability::Buffered)?;
        self.keep(&region);
        Ok(region)
    }

    fn keep(&self, region: &Arc<RegionState>) {
        let name = region.name.to_string();
        self.regions.write().insert(name, Arc::clone(region));
    }

    /// A dropped table is served no more, and its data goes, durably when this returns. Its ranges may leave then.
    pub fn drop_table(&self, table: &str) -> Result<()> {
        {
            let mut held = self.holds.write();
            *held = Arc::new(held.without(table));
        }
        let _making = self.making.lock();
        self.regions.write().remove(table);
        match self.engine.drop_region(table) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            dropped => dropped,
        }
    }

    /// Its ranges have left with this version of the configuration.
    pub fn has_left(&self, table: &str, version: Version) {
        let mut held = self.holds.write();
        *held = Arc::new(held.left(table, version));
    }
}
