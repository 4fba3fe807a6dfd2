//! What a replay found, into L0.

use kreon_format::{INLINE_VALUE_BYTES_MAX, RecordKind};
use kreon_l0::{Keep, L0};
use kreon_log::ReplayRecord;

use crate::keys::L0Key;
use crate::placement;

/// Records per call of [`insert`]: as many cache misses as a processor overlaps.
pub const TOGETHER: usize = 8;

/// Puts at most [`TOGETHER`] replayed records of regions that exist into L0, in any order and from any thread: L0 orders
/// the versions of a key by LSN; a value that a record has goes into L0. Asks for the memory of all of them before it needs any.
pub fn insert(l0: &L0, records: &[ReplayRecord<'_>]) {
    let keys: [_; TOGETHER] = std::array::from_fn(|at| {
        let record = records.get(at)?;
        Some(L0Key::new(record.region, record.key))
    });
    let spots = keys
        .each_ref()
        .map(|key| key.as_ref().map(|key| l0.approach(key.as_slice())));
    for (record, spot) in records.iter().zip(spots) {
        let ReplayRecord { key, offset, .. } = *record;
        let value_bytes = (record.kind != RecordKind::Delete).then_some(record.value_bytes);
        let whole = (record.value, record.attributes);
        let payload = placement::place(key, value_bytes, whole, offset, INLINE_VALUE_BYTES_MAX);
        if let Some(spot) = spot {
            spot.insert(record.lsn, payload, Keep::default());
        }
    }
}
