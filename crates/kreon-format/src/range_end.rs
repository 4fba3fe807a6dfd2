//! The value of a range deletion: one byte that says whether the range has an end, then the end.

use kreon_base::{Error, KEY_BYTES_MAX, Result};

const TO_THE_LAST_KEY: u8 = 0;
const BEFORE: u8 = 1;

/// Longest end: the longest key and one byte, for the first key behind it.
pub const RANGE_END_BYTES_MAX: usize = KEY_BYTES_MAX + 1;

/// Longest value of a range deletion.
pub const RANGE_VALUE_BYTES_MAX: usize = 1 + RANGE_END_BYTES_MAX;

/// The value of a range deletion up to `end` (exclusive); `None`: to the last key.
pub fn range_value(end: Option<&[u8]>) -> Vec<u8> {
    match end {
        None => vec![TO_THE_LAST_KEY],
        Some(end) => [&[BEFORE], end].concat(),
    }
}

/// The end in a [`range_value`].
///
/// # Errors
/// `Corruption` if the value is not valid.
pub fn range_end(value: &[u8]) -> Result<Option<&[u8]>> {
    match value.split_first() {
        Some((&TO_THE_LAST_KEY, [])) => Ok(None),
        Some((&BEFORE, end)) if end.len() <= RANGE_END_BYTES_MAX => Ok(Some(end)),
        _ => Err(Error::corruption("the end of a deleted range is invalid")),
    }
}
