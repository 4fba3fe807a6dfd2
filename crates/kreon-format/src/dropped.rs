//! What the record that makes a region tells of drops: the value of the record, 8 bytes.

use kreon_base::{Epoch, Error, Result};

/// Bytes of the value.
pub const DROPPED_VALUE_BYTES: usize = 8;

/// The value of a record that makes a region in a run of the store that has dropped one: an epoch that was durable by then
/// and has the last drop; 0: it has dropped none. A superblock of before would bring the dropped region back.
pub const fn dropped_value(epoch: Epoch) -> [u8; DROPPED_VALUE_BYTES] {
    epoch.0.to_le_bytes()
}

/// What [`dropped_value`] was made of.
///
/// # Errors
/// `Corruption` for bytes that no record has.
pub fn dropped_epoch(value: &[u8]) -> Result<Epoch> {
    let bytes = value.try_into().map_err(|_| {
        Error::corruption("what a record that makes a region says of drops makes no sense")
    })?;
    Ok(Epoch(u64::from_le_bytes(bytes)))
}
