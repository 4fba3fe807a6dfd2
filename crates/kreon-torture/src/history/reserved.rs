//! Keys that belong to the load under way.
//!
//! A load leaves out keys that others write while it runs, which no order of whole calls explains. So it gets every
//! second key of a region for itself, and a write of such a key goes to the key beside it.

use parking_lot::{Mutex, RwLock};

use super::handle::Handle;

/// The keys of the load under way, if there is one.
#[derive(Default)]
pub struct Reserved {
    /// One load at a time.
    loading: Mutex<()>,
    /// Keys of this region with this remainder by 2 belong to a load. Held shared by whoever writes.
    keys: RwLock<Option<(u32, usize)>>,
}

impl Reserved {
    /// Runs a write that may touch any key which `allowed` makes of the wanted one.
    pub fn beside<R>(&self, write: impl FnOnce(&dyn Fn(&Handle, usize) -> usize) -> R) -> R {
        let keys = self.keys.read();
        write(&|handle, key| match *keys {
            Some((region, rest)) if handle.region.id.0 == region && key % 2 == rest => key ^ 1,
            _ => key,
        })
    }

    /// Runs a load into these keys, unless another one is under way.
    pub fn load<R>(&self, region: u32, rest: usize, load: impl FnOnce() -> R) -> Option<R> {
        let _loading = self.loading.try_lock()?;
        // All writes that may have taken such a key have returned when this is theirs.
        *self.keys.write() = Some((region, rest));
        let outcome = load();
        *self.keys.write() = None;
        Some(outcome)
    }
}
