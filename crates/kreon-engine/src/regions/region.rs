//! Regions: named ordered key spaces.

use std::collections::BTreeMap;
use std::sync::Arc;

use kreon_base::{
    Error, ErrorKind, Lsn, REGION_NAME_BYTES_MAX, RegionId, RegionOptions, Result, Timestamp,
};
use kreon_format::INLINE_VALUE_BYTES_MAX;
use kreon_sync::{AtomicBool, AtomicU64, Ordering, RwLock};

use super::gaps::Gaps;
use super::own_options::OwnOptions;
use crate::options::{GROWTH_FACTOR_MAX, GROWTH_FACTOR_MIN};

/// A region that exists, or existed.
#[derive(Debug)]
pub struct RegionState {
    /// Its number.
    pub id: RegionId,
    /// Its name.
    pub name: Arc<str>,
    /// The LSN behind the record that made it; 0: it existed when the store was opened.
    pub made_end: Lsn,
    /// What it has of its own.
    pub own: OwnOptions,
    dropped: AtomicBool,
    /// Stretches without values that scans have found.
    pub gaps: Gaps,
}

impl RegionState {
    /// A region that exists.
    pub fn new(id: RegionId, name: Arc<str>, options: &RegionOptions, made_end: Lsn) -> Self {
        Self {
            id,
            name,
            made_end,
            own: OwnOptions::new(options),
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
pub struct Regions {
    found: RwLock<Found>,
    /// The least growth factor that a region has had of its own.
    growth_factor_min: AtomicU64,
}

#[derive(Default)]
struct Found {
    by_name: BTreeMap<Arc<str>, Arc<RegionState>>,
    by_id: BTreeMap<RegionId, Arc<RegionState>>,
}

impl Default for Regions {
    fn default() -> Self {
        Self {
            found: RwLock::default(),
            growth_factor_min: AtomicU64::new(u64::MAX),
        }
    }
}

impl Regions {
    /// The least growth factor that a region has, or had, of its own.
    pub fn growth_factor_min(&self) -> Option<u32> {
        u32::try_from(self.growth_factor_min.load(Ordering::Relaxed)).ok()
    }

    /// Notes the growth factor of a region.
    pub fn note_growth_factor(&self, growth_factor: Option<u8>) {
        if let Some(growth) = growth_factor {
            self.growth_factor_min
                .fetch_min(growth.into(), Ordering::Relaxed);
        }
    }

    /// The region called `name`.
    pub fn get(&self, name: &str) -> Option<Arc<RegionState>> {
        self.found.read().by_name.get(name).cloned()
    }

    /// The region with this number.
    pub fn of(&self, id: RegionId) -> Option<Arc<RegionState>> {
        self.found.read().by_id.get(&id).cloned()
    }

    /// Adds a region.
    pub fn insert(&self, region: RegionState) -> Arc<RegionState> {
        let region = Arc::new(region);
        self.note_growth_factor(region.own.growth_factor());
        let (name, mut found) = (Arc::clone(&region.name), self.found.write());
        found.by_name.insert(name, Arc::clone(&region));
        found.by_id.insert(region.id, Arc::clone(&region));
        region
    }

    /// Takes a region out.
    pub fn remove(&self, name: &str) -> Option<Arc<RegionState>> {
        let mut found = self.found.write();
        let region = found.by_name.remove(name)?;
        found.by_id.remove(&region.id);
        Some(region)
    }

    /// All of them, by name.
    pub fn list(&self) -> Vec<Arc<RegionState>> {
        self.found.read().by_name.values().cloned().collect()
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

/// # Errors
/// `InvalidArgument` if no region can have these options.
pub fn check_options(options: &RegionOptions) -> Result<()> {
    let limit = options.inline_value_bytes_max.map_or(0, usize::from);
    if limit > INLINE_VALUE_BYTES_MAX {
        return Err(Error::invalid(format!(
            "inline_value_bytes_max of a region is {limit}, the most is {INLINE_VALUE_BYTES_MAX}"
        )));
    }
    if options
        .ttl_ms
        .is_some_and(|ms| ms.get() > Timestamp::MAX.ms())
    {
        return Err(Error::invalid("the TTL of a region has at most 48 bits"));
    }
    match options.growth_factor.map(u32::from) {
        Some(growth) if !(GROWTH_FACTOR_MIN..=GROWTH_FACTOR_MAX).contains(&growth) => {
            Err(Error::invalid(format!(
                "growth_factor of a region is {growth}, it can be {GROWTH_FACTOR_MIN} to {GROWTH_FACTOR_MAX}"
            )))
        }
        _ => Ok(()),
    }
}
