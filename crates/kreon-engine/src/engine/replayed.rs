//! What a replay found, into L0.

use kreon_l0::{Keep, L0};

use crate::keys::L0Key;
use crate::placement;
use crate::recovery::{Replayed, TOGETHER};

/// Puts at most [`TOGETHER`] replayed records into L0. Asks for the memory of all of them before it needs any.
pub(super) fn insert(l0: &L0, records: &[Replayed<'_>], inline_max: usize) {
    let keys: [_; TOGETHER] = std::array::from_fn(|at| {
        let record = records.get(at)?;
        Some(L0Key::new(record.region, record.key))
    });
    let spots = keys
        .each_ref()
        .map(|key| key.as_ref().map(|key| l0.approach(key.as_slice())));
    for (record, spot) in records.iter().zip(spots) {
        let Replayed { key, offset, .. } = *record;
        let payload = placement::place(key, record.value_bytes, record.value, offset, inline_max);
        if let Some(spot) = spot {
            spot.insert(record.lsn, payload, Keep::default());
        }
    }
}
