//! Regions: named ordered key spaces.

use kreon_sync::{AtomicBool, Ordering};
use std::collections::BTreeMap;
use std::sync::Arc;

use super::gaps::Gaps;
use kreon_base::{Error, ErrorKind, Lsn, REGION_NAME_BYTES_MAX, RegionId, Result};
use kreon_sync::RwLock;

/// A region that exists, or existed.
#[derive(Debug)]
pub struct RegionState {
    /// Its number.
    pub id: RegionId,
    /// Its name.
    pub name: Arc<str>,
    /// The LSN behind the record that made it; 0: it existed when the store was opened.
    pub made_end: Lsn,
    dropped: AtomicBool,
    /// Stretches without values that scans have found.
    pub gaps: Gaps,
}

impl RegionState {
    /// A region that exists.
    pub fn new(id: RegionId, name: Arc<str>, made_end: Lsn) -> Self {
        Self {
            id,
            name,
            made_end,
            dropped: AtomicBool::new(false),
            gaps: Gaps::default(),
        }
    }

    /// # Errors
    /// `Closed` if the region was dropped.
    pub fn check(&self) -> Result<()> {
        if self.dropped.load(Ordering::Acquire) {
            let message = format!("region {:?} was dropped; open it again by name", self.name);
            return Err(Error::new(ErrorKind::Closed, message));
        }
        Ok(())
    }

    /// Makes all further calls through handles of the region fail.
    pub fn drop_for_all(&self) {
        self.dropped.store(true, Ordering::Release);
    }

    /// Undoes [`Self::drop_for_all`]: the drop could not be made durable.
    pub fn keep_after_all(&self) {
        self.dropped.store(false, Ordering::Release);
    }
}

/// The regions that exist.
#[derive(Default)]
pub struct Regions(RwLock<Found>);

#[derive(Default)]
struct Found {
    by_name: BTreeMap<Arc<str>, Arc<RegionState>>,
    by_id: BTreeMap<RegionId, Arc<RegionState>>,
}

impl Regions {
    /// The region called `name`.
    pub fn get(&self, name: &str) -> Option<Arc<RegionState>> {
        self.0.read().by_name.get(name).cloned()
    }

    /// The region with this number.
    pub fn of(&self, id: RegionId) -> Option<Arc<RegionState>> {
        self.0.read().by_id.get(&id).cloned()
    }

    /// Adds a region.
    pub fn insert(&self, region: RegionState) -> Arc<RegionState> {
        let region = Arc::new(region);
        let (name, mut found) = (Arc::clone(&region.name), self.0.write());
        found.by_name.insert(name, Arc::clone(&region));
        found.by_id.insert(region.id, Arc::clone(&region));
        region
    }

    /// Takes a region out.
    pub fn remove(&self, name: &str) -> Option<Arc<RegionState>> {
        let mut found = self.0.write();
        let region = found.by_name.remove(name)?;
        found.by_id.remove(&region.id);
        Some(region)
    }

    /// All of them, by name.
    pub fn list(&self) -> Vec<Arc<RegionState>> {
        self.0.read().by_name.values().cloned().collect()
    }
}

/// # Errors
/// `InvalidArgument` if no region can be called so.
pub fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > REGION_NAME_BYTES_MAX {
        return Err(Error::invalid(format!(
            "a region's name has 1 to {REGION_NAME_BYTES_MAX} bytes, this one {}",
            name.len()
        )));
    }
    Ok(())
}
