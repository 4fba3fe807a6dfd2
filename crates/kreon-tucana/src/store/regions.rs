//! The regions of a store. Their names stand in a region of their own, each with its number, and under the empty key stands the
//! largest number that was given away: none is given away twice.
//!
//! A region is dropped in two steps: its name goes, with one record, and then its keys, one by one. What is left of the keys when
//! that is cut short has no name any more; nobody sees it, and the next drop or opening deletes it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kreon_base::{Error, ErrorKind, REGION_NAME_BYTES_MAX, Result};
use kreon_sync::Mutex;

use super::options::Durability;
use super::region_key::{key_within, region_of, tree_range, with_tree_key};
use super::region_state::RegionState;
use super::shared::Shared;
use super::sweep::sweep;
use crate::tree::{Cursor, Direction, ScanRange};

/// The region of the names.
pub(super) const NAMES: u32 = 0;

/// The key of the largest number in it.
const LARGEST: &[u8] = b"";

/// Regions whose names were looked up, and what is left of dropped ones.
pub(super) struct Regions {
    /// The region of the names, as others see a region.
    names: RegionState,
    /// By their names. Regions are made and their names removed one at a time.
    known: Mutex<BTreeMap<Box<str>, Arc<RegionState>>>,
    /// Numbers of regions without a name that may have keys.
    nameless: Mutex<Vec<u32>>,
}

impl Regions {
    pub(super) fn new() -> Self {
        Self {
            names: RegionState::new(NAMES, ""),
            known: Mutex::default(),
            nameless: Mutex::default(),
        }
    }

    /// The region called `name`, which is made if there is none, durably.
    ///
    /// # Errors
    /// `InvalidArgument` for a name that no region can have; `OutOfSpace`; those of the device.
    pub(super) fn get_or_make(&self, shared: &Shared, name: &str) -> Result<Arc<RegionState>> {
        check_name(name)?;
        let mut known = self.known.lock();
        if let Some(state) = self.find(shared, &mut known, name)? {
            return Ok(state);
        }
        let number = self.number_of(shared, LARGEST)?.unwrap_or(NAMES);
        let used_up = || Error::new(ErrorKind::OutOfSpace, "all numbers of regions were used");
        let number = number.checked_add(1).ok_or_else(used_up)?;
        let put = |key: &[u8], durability| {
            let value = number.to_le_bytes();
            shared.write(&self.names, key, Some(&value), durability)
        };
        // The number comes first in the log: a power cut may leave one without a name, but not two names with one.
        put(LARGEST, Durability::Buffered)?;
        put(name.as_bytes(), Durability::Sync)?;
        let state = Arc::new(RegionState::new(number, name));
        known.insert(name.into(), Arc::clone(&state));
        Ok(state)
    }

    /// The region called `name`.
    ///
    /// # Errors
    /// `NotFound`; those of the device; `Corruption`.
    pub(super) fn existing(&self, shared: &Shared, name: &str) -> Result<Arc<RegionState>> {
        let found = self.find(shared, &mut self.known.lock(), name)?;
        found.ok_or_else(|| missing(name))
    }

    fn find(
        &self,
        shared: &Shared,
        known: &mut BTreeMap<Box<str>, Arc<RegionState>>,
        name: &str,
    ) -> Result<Option<Arc<RegionState>>> {
        if let Some(state) = known.get(name) {
            return Ok(Some(Arc::clone(state)));
        }
        // No region can have a longer name or none: that is the key of the largest number.
        if check_name(name).is_err() {
            return Ok(None);
        }
        let Some(number) = self.number_of(shared, name.as_bytes())? else {
            return Ok(None);
        };
        let state = Arc::new(RegionState::new(number, name));
        known.insert(name.into(), Arc::clone(&state));
        Ok(Some(state))
    }

    /// The names of all regions, ascending.
    ///
    /// # Errors
    /// Those of the device; `Corruption`.
    pub(super) fn list(&self, shared: &Shared) -> Result<Vec<String>> {
        let named = named(shared)?;
        Ok(named.into_iter().map(|(name, _)| name).collect())
    }

    /// Drops a region. Once its name is gone no write comes into it.
    ///
    /// # Errors
    /// `NotFound`: there is none. Those of a write: nothing has happened, or the error says what has.
    pub(super) fn drop_region(&self, shared: &Shared, name: &str) -> Result<()> {
        let number = self.remove_name(shared, name)?;
        shared.sync().map_err(|error| {
            error.within(format!(
                "region {name:?} was dropped, but whether that is durable is unknown"
            ))
        })?;
        self.sweep_nameless(shared, number).map_err(|error| {
            let what = format!("region {name:?} was dropped, but not all of its keys were deleted");
            error.within(what)
        })?;
        // The region is gone. What is wrong with others is not its drop's.
        self.sweep_all(shared);
        Ok(())
    }

    /// Removes the name of a region, and waits until no write comes into it any more. Returns its number.
    fn remove_name(&self, shared: &Shared, name: &str) -> Result<u32> {
        let mut known = self.known.lock();
        let state = self.find(shared, &mut known, name)?;
        let state = state.ok_or_else(|| missing(name))?;
        shared.write(&self.names, name.as_bytes(), None, Durability::Buffered)?;
        known.remove(name);
        state.drop_for_ever();
        shared.tree.wait_for_writers();
        self.nameless.lock().push(state.number);
        Ok(state.number)
    }

    /// Deletes the keys of a region without a name.
    fn sweep_nameless(&self, shared: &Shared, number: u32) -> Result<()> {
        let nameless = RegionState::new(number, "");
        sweep(shared, &nameless, tree_range(number, ..))?;
        self.nameless.lock().retain(|other| *other != number);
        Ok(())
    }

    /// Deletes what earlier drops have left, as far as it can.
    fn sweep_all(&self, shared: &Shared) {
        let numbers = self.nameless.lock().clone();
        for number in numbers {
            if let Err(error) = self.sweep_nameless(shared, number) {
                tracing::warn!(number, %error, "what is left of a dropped region was not deleted");
            }
        }
    }

    /// Deletes keys of regions that have no name: drops that were cut short before the store was opened. What cannot be deleted is
    /// left to the next drop.
    ///
    /// # Errors
    /// Those of the device; `Corruption`: the names, or which regions have keys, cannot be read.
    pub(super) fn finish_drops(&self, shared: &Shared) -> Result<()> {
        let named: BTreeSet<u32> = named(shared)?
            .into_iter()
            .map(|(_, number)| number)
            .collect();
        let mut next = NAMES.checked_add(1);
        while let Some(from) = next {
            let range = ScanRange {
                low: from.to_be_bytes().to_vec(),
                high: None,
            };
            let mut cursor = Cursor::new(range, Direction::Forward);
            let first = shared.tree.next(&mut cursor, |key, _| region_of(key))?;
            let Some(number) = first.transpose()? else {
                break;
            };
            if !named.contains(&number) {
                tracing::info!(number, "a dropped region has keys left");
                self.nameless.lock().push(number);
            }
            next = number.checked_add(1);
        }
        self.sweep_all(shared);
        Ok(())
    }

    /// The number in an entry of the names.
    fn number_of(&self, shared: &Shared, key: &[u8]) -> Result<Option<u32>> {
        let get = |key: &[u8]| shared.tree.get_with(key, decode);
        with_tree_key(NAMES, key, get)?.transpose()
    }
}

/// Names and numbers of all regions.
fn named(shared: &Shared) -> Result<Vec<(String, u32)>> {
    let mut cursor = Cursor::new(tree_range(NAMES, ..), Direction::Forward);
    let mut named = Vec::new();
    let entry = |key: &[u8], value: &[u8]| (key_within(key).to_vec(), decode(value));
    while let Some((name, number)) = shared.tree.next(&mut cursor, entry)? {
        if name != LARGEST {
            let name = String::from_utf8(name)
                .map_err(|_| Error::corruption("the name of a region is no UTF-8"))?;
            named.push((name, number?));
        }
    }
    Ok(named)
}

fn decode(value: &[u8]) -> Result<u32> {
    let number = value.try_into().map(u32::from_le_bytes);
    number.map_err(|_| Error::corruption("the number of a region has not 4 bytes"))
}

/// # Errors
/// `InvalidArgument` if no region can be called so.
fn check_name(name: &str) -> Result<()> {
    match (1..=REGION_NAME_BYTES_MAX).contains(&name.len()) {
        true => Ok(()),
        false => Err(Error::invalid(format!(
            "a region's name has 1 to {REGION_NAME_BYTES_MAX} bytes, this one {}",
            name.len()
        ))),
    }
}

fn missing(name: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("no region {name:?}"))
}
