//! The value of the record that creates a region: the epoch of the last region drop (8 bytes) and, since format 6, the
//! options of the region, if it has any.

use kreon_base::{Epoch, Error, RegionOptions, Result};

use crate::region_options::{REGION_OPTIONS_BYTES, decode_region_options, encode_region_options};

/// Length of the epoch in bytes.
pub const DROPPED_VALUE_BYTES: usize = 8;

/// Longest value in bytes.
pub const MADE_VALUE_BYTES_MAX: usize = DROPPED_VALUE_BYTES + REGION_OPTIONS_BYTES;

/// The value for a region that is created with `options`. `dropped` is a durable epoch that includes the last drop of a
/// region by this opening; 0: it has dropped none. An opening from a superblock of an earlier epoch would bring the dropped
/// region back.
pub fn made_value(dropped: Epoch, options: &RegionOptions) -> Vec<u8> {
    let mut value = Vec::with_capacity(MADE_VALUE_BYTES_MAX);
    value.extend(dropped.0.to_le_bytes());
    if !options.is_default() {
        value.extend(encode_region_options(options));
    }
    value
}

/// The epoch and the options in a [`made_value`].
///
/// # Errors
/// `Corruption` if it is none.
pub fn read_made_value(value: &[u8]) -> Result<(Epoch, RegionOptions)> {
    let parts = value
        .split_first_chunk()
        .and_then(|(epoch, options)| match options {
            [] => Some((epoch, RegionOptions::DEFAULT)),
            options => Some((epoch, decode_region_options(options.try_into().ok()?)?)),
        });
    match parts {
        Some((epoch, options)) => Ok((Epoch(u64::from_le_bytes(*epoch)), options)),
        None => Err(Error::corruption(
            "the value of a record that creates a region is invalid",
        )),
    }
}
