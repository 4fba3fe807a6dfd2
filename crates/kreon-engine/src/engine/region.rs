//! Regions: named ordered key spaces.

use crate::sync::{AtomicBool, Ordering};
use std::collections::BTreeMap;
use std::sync::Arc;

use super::gaps::Gaps;
use crate::sync::RwLock;
use kreon_base::{Error, ErrorKind, REGION_NAME_BYTES_MAX, RegionId, Result};

/// A region that exists, or existed.
#[derive(Debug)]
pub struct RegionState {
    /// Its number.
    pub id: RegionId,
    /// Its name.
    pub name: String,
    dropped: AtomicBool,
    /// Where it has no keys, as far as scans have found out.
    pub(super) gaps: Gaps,
}

impl RegionState {
    /// A region that exists.
    pub fn new(id: RegionId, name: String) -> Self {
        Self {
            id,
            name,
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

    /// Ends the region for all who hold it.
    pub fn drop_for_all(&self) {
        self.dropped.store(true, Ordering::Release);
    }

    /// Undoes [`Self::drop_for_all`]: the drop could not be made durable.
    pub fn keep_after_all(&self) {
        self.dropped.store(false, Ordering::Release);
    }
}

/// The regions that exist, by name.
#[derive(Default)]
pub struct Regions(RwLock<BTreeMap<String, Arc<RegionState>>>);

impl Regions {
    /// The region called `name`.
    pub fn get(&self, name: &str) -> Option<Arc<RegionState>> {
        self.0.read().get(name).cloned()
    }

    /// Adds a region.
    pub fn insert(&self, region: RegionState) -> Arc<RegionState> {
        let region = Arc::new(region);
        self.0
            .write()
            .insert(region.name.clone(), Arc::clone(&region));
        region
    }

    /// Takes a region out.
    pub fn remove(&self, name: &str) -> Option<Arc<RegionState>> {
        self.0.write().remove(name)
    }

    /// All of them, by name.
    pub fn list(&self) -> Vec<Arc<RegionState>> {
        self.0.read().values().cloned().collect()
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
