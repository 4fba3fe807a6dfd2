//! A new store.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use kreon_base::{Incarnation, RegionId, Result};
use kreon_device::Device;
use kreon_format::StoreId;
use kreon_l0::L0;

use super::assemble::{Parts, assemble, first_checkpoint, new_mapping, segments_max};
use crate::level::{Levels, Memory};
use crate::options::{MemorySplit, Options};
use crate::state::{Ledger, Storage};
use kreon_log::LogHistory;
use kreon_volume::{Allocator, creation};

/// Formats the volume. Until the first superblock is durable, slot 0 holds the creation mark, and an open after a crash
/// begins the creation anew.
pub fn create(device: Arc<dyn Device>, options: &Options, split: &MemorySplit) -> Result<Storage> {
    let incarnation = options.mirroring.incarnation_after(Incarnation(0))?;
    let store = StoreId(options.store_id.unwrap_or_else(random));
    creation::begin(device.as_ref(), store)?;
    let history = LogHistory::empty();
    let ledger = Ledger {
        incarnation,
        next_region: RegionId(1),
        marker: history.marker,
        ..Ledger::default()
    };
    let parts = Parts {
        store,
        allocator: Allocator::new(Arc::clone(&device), segments_max(options)),
        levels: Levels::default(),
        ledger,
        history,
        l0: Memory::new(L0::with_budget(2 * split.l0_bytes)),
        mapping: new_mapping(&device, options, split)?,
        device,
    };
    let storage = assemble(parts, options, split)?;
    first_checkpoint(&storage, Vec::new())?;
    Ok(storage)
}

/// A random store identity, so that remains of another store on the device never verify. The standard library seeds
/// its hasher from the operating system.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
