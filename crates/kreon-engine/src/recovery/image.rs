//! Loads the image of L0 at an opening.

use kreon_base::{PageNo, Result};
use kreon_device::Device;
use kreon_format::{RecordKind, StoreId, pages_of};
use kreon_l0::L0;
use kreon_log::ReplayRecord;

use super::replayed;
use crate::image::load::{LongEntry, load};
use crate::image::room::Room;
use crate::level::{MappedLog, Memory};
use crate::state::{Ledger, Storage};

/// Outcome of [`restore`].
pub struct Restored {
    /// L0 with the entries of the image; empty without a valid one.
    pub l0: Memory,
    /// Entries with long keys, not yet in L0.
    pub long: Vec<LongEntry>,
    /// Pages of an unreadable image, to be freed.
    pub damaged: Vec<PageNo>,
}

/// Loads the image of `ledger`. A damaged image is removed from the ledger and the log replayed from the marker
/// instead. `l0_bytes` is the memory budget of L0 and its successors; what has no `room` is left out.
pub fn restore(
    device: &dyn Device,
    store: StoreId,
    ledger: &mut Ledger,
    (l0_bytes, room): (usize, &mut Room),
) -> Restored {
    let l0 = Memory::new(L0::with_budget(l0_bytes));
    let exists = |region| ledger.regions.contains(region);
    match load(device, store, &ledger.image, &exists, (&l0, room)) {
        Ok(loaded) => {
            tracing::info!(entries = loaded.entries, "loaded the image of L0");
            let (long, damaged) = (loaded.long, Vec::new());
            Restored { l0, long, damaged }
        }
        Err(error) => {
            tracing::warn!(%error, "the image of L0 is passed over, the log replayed instead");
            room.begin_anew();
            let image = std::mem::take(&mut ledger.image);
            ledger.found_damaged_image = true;
            let pages = image.iter().flat_map(|part| pages_of(&part.pages));
            Restored {
                l0: Memory::new(L0::with_budget(l0_bytes)),
                long: Vec::new(),
                damaged: pages.collect(),
            }
        }
    }
}

/// Inserts the entries with long keys into L0, with their keys from the log.
///
/// # Errors
/// `Corruption`, `Io`: a key cannot be read.
pub fn insert_long(storage: &Storage, long: &[LongEntry]) -> Result<()> {
    let pages = MappedLog {
        mapping: &storage.mapping,
    };
    let view = storage.views.load();
    let mut key = Vec::new();
    for entry in long {
        let log = storage.log.reader();
        log.read_key(&pages, entry.offset, entry.key_bytes, &mut key)?;
        let record = ReplayRecord {
            lsn: entry.lsn,
            offset: entry.offset,
            region: entry.region,
            kind: entry
                .value_bytes
                .map_or(RecordKind::Delete, |_| RecordKind::Put),
            key: &key,
            attributes: entry.attributes,
            value_bytes: entry.value_bytes.unwrap_or(0),
            value: None,
        };
        replayed::insert(&view.active, &[record]);
    }
    Ok(())
}
