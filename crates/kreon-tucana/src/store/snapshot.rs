//! The state of a store at one moment.

use std::sync::Arc;

use kreon_base::{Error, KeyRange, Result};

use super::handle::Handle;
use super::region::Region;
use super::region_key::{tree_range, with_tree_key};
use super::scan::{Source, StoreScan};
use crate::tree::{Direction, Frozen, ScanRange};

/// The state of all regions of a store at one moment, also of those that were dropped since. Clones are the same state.
#[derive(Clone)]
pub struct StoreSnapshot {
    handle: Arc<Handle>,
    state: Arc<Frozen>,
}

impl StoreSnapshot {
    pub(super) fn new(handle: &Arc<Handle>, state: Frozen) -> Self {
        Self {
            handle: Arc::clone(handle),
            state: Arc::new(state),
        }
    }

    /// The value of a key of a region.
    ///
    /// # Errors
    /// `InvalidArgument` for a key of more than 1 KiB, or a region of another store; `Closed` after the store was closed;
    /// `Corruption`; those of the device.
    pub fn get(&self, region: &Region, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.get_with(region, key, <[u8]>::to_vec)
    }

    /// Lends the value of a key of a region to `use_value`, without a copy.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_with<R>(
        &self,
        region: &Region,
        key: impl AsRef<[u8]>,
        use_value: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let number = self.number_of(region)?;
        self.handle.with(|core| {
            let state = core.shared.tree.at(&self.state);
            with_tree_key(number, key.as_ref(), |key| state.get_with(key, use_value))
        })
    }

    /// The pairs of a range of a region.
    pub fn scan(&self, region: &Region, range: impl KeyRange, direction: Direction) -> StoreScan {
        let (source, range) = match self.number_of(region) {
            Ok(number) => (
                Source::Frozen(Arc::clone(&self.state)),
                tree_range(number, range),
            ),
            Err(error) => (Source::Refused(error), ScanRange::default()),
        };
        StoreScan::new(&self.handle, source, range, direction)
    }

    fn number_of(&self, region: &Region) -> Result<u32> {
        let number = region.number_in(&self.handle);
        number.ok_or_else(|| Error::invalid("a region of another store"))
    }
}
