//! A case of a property, made from the bytes of an input.

use arbitrary::{Result, Unstructured};

/// Checks `property` with a case made from `bytes`. Bytes too few for a whole case check nothing.
pub fn with(bytes: &[u8], property: impl FnOnce(&mut Unstructured<'_>) -> Result<()>) {
    // Too few bytes are no failure.
    let _ = property(&mut Unstructured::new(bytes));
}
