//! The value (8 bytes) of the record that creates a region: the epoch of the last region drop.

use kreon_base::{Epoch, Error, Result};

/// Length of the value in bytes.
pub const DROPPED_VALUE_BYTES: usize = 8;

/// The value for a region created by an opening that has dropped a region: a durable epoch that includes the last drop.
/// 0: it has dropped none. An opening from a superblock of an earlier epoch would bring the dropped region back.
pub const fn dropped_value(epoch: Epoch) -> [u8; DROPPED_VALUE_BYTES] {
    epoch.0.to_le_bytes()
}

/// The epoch in a [`dropped_value`].
///
/// # Errors
/// `Corruption` if the length is wrong.
pub fn dropped_epoch(value: &[u8]) -> Result<Epoch> {
    let bytes = value
        .try_into()
        .map_err(|_| Error::corruption("the value of a record that creates a region is invalid"))?;
    Ok(Epoch(u64::from_le_bytes(bytes)))
}
