//! Regions: the handle for a set of keys.

use std::sync::Arc;

use kreon_base::{KeyRange, Result};

use super::handle::{Core, Handle};
use super::options::Durability;
use super::region_key::tree_range;
use super::region_state::RegionState;
use super::scan::{Source, StoreScan};
use super::sweep::sweep;
use crate::tree::Direction;

/// A set of keys of its own in a store, in their order. A handle: clones are cheap, and the same region.
///
/// Calls fail with `Closed` after the region was dropped or the store closed.
#[derive(Clone)]
pub struct Region {
    handle: Arc<Handle>,
    state: Arc<RegionState>,
}

impl Region {
    pub(super) fn new(handle: &Arc<Handle>, state: Arc<RegionState>) -> Self {
        Self {
            handle: Arc::clone(handle),
            state,
        }
    }

    /// Its number, if it is one of this store.
    pub(super) fn number_in(&self, handle: &Arc<Handle>) -> Option<u32> {
        Arc::ptr_eq(&self.handle, handle).then_some(self.state.number)
    }

    /// The name of the region.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// Gives a key a value, as durably as [`Options::durability`](crate::Options::durability) says. Returns whether it had one.
    ///
    /// # Errors
    /// `InvalidArgument` for a key of more than 1 KiB, or a record of more than a segment. `OutOfSpace`: nothing has changed;
    /// deletions are possible still. `Poisoned` after a failed write or flush. `Closed`. Those of the device.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        self.with(|core| {
            let durability = core.shared.options.durability;
            let value = Some(value.as_ref());
            core.shared
                .write(&self.state, key.as_ref(), value, durability)
        })
    }

    /// The same with a durability of its own.
    ///
    /// # Errors
    /// As [`put`](Self::put). After an error of the device with `Sync` it is unknown whether the write is durable.
    pub fn put_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        durability: Durability,
    ) -> Result<bool> {
        let value = Some(value.as_ref());
        self.with(|core| {
            core.shared
                .write(&self.state, key.as_ref(), value, durability)
        })
    }

    /// Deletes a key, as durably as [`Options::durability`](crate::Options::durability) says. Returns whether it had a value.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.with(|core| {
            let durability = core.shared.options.durability;
            core.shared
                .write(&self.state, key.as_ref(), None, durability)
        })
    }

    /// The same with a durability of its own.
    ///
    /// # Errors
    /// As [`put_with`](Self::put_with).
    pub fn delete_with(&self, key: impl AsRef<[u8]>, durability: Durability) -> Result<bool> {
        self.with(|core| {
            core.shared
                .write(&self.state, key.as_ref(), None, durability)
        })
    }

    /// Deletes the keys of a range, as durably as [`Options::durability`](crate::Options::durability) says: those that a scan of it
    /// finds, one by one. **Not atomic**: a failure or a power cut leaves a part of them, and a key that is put meanwhile may stay.
    ///
    /// # Errors
    /// As [`delete`](Self::delete); `Corruption`.
    pub fn delete_range(&self, range: impl KeyRange) -> Result<()> {
        self.with(|core| self.sweep(core, range, core.shared.options.durability))
    }

    /// The same with a durability of its own.
    ///
    /// # Errors
    /// As [`delete_range`](Self::delete_range).
    pub fn delete_range_with(&self, range: impl KeyRange, durability: Durability) -> Result<()> {
        self.with(|core| self.sweep(core, range, durability))
    }

    fn sweep(&self, core: &Core, range: impl KeyRange, durability: Durability) -> Result<()> {
        let range = tree_range(self.state.number, range);
        sweep(&core.shared, &self.state, range)?;
        match durability {
            Durability::Buffered => Ok(()),
            Durability::Sync => core.shared.sync(),
        }
    }

    /// The value of a key; `None` if it has none.
    ///
    /// # Errors
    /// `InvalidArgument` for a key of more than 1 KiB; `Closed`; `Corruption`; those of the device.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.get_with(key, <[u8]>::to_vec)
    }

    /// Lends the value of a key to `use_value`, without a copy. Keep it short: the page of the value cannot leave the memory
    /// meanwhile.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_with<R>(
        &self,
        key: impl AsRef<[u8]>,
        use_value: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        self.with(|core| core.shared.get_with(&self.state, key.as_ref(), use_value))
    }

    /// Whether a key has a value. Costs as much as [`get_with`](Self::get_with): keys stand beside their values only.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get_with(key, |_| ())?.is_some())
    }

    /// The pairs of a range, as they are when the scan comes to their leaf. What is replaced meanwhile in a leaf that it is
    /// at takes space until it goes on.
    pub fn scan(&self, range: impl KeyRange, direction: Direction) -> StoreScan {
        let range = tree_range(self.state.number, range);
        let source = Source::Newest(Arc::clone(&self.state));
        StoreScan::new(&self.handle, source, range, direction)
    }

    #[inline]
    fn with<R>(&self, call: impl FnOnce(&Core) -> Result<R>) -> Result<R> {
        self.handle.with(call)
    }
}
