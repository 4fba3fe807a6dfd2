//! Values that are longer than a slot.
//!
//! - `values`: where the parts of such values are, and when their slots are free
//! - `put`: a large value on its way to the device
//! - `get`: a large value on its way to a reader

mod get;
mod put;
mod values;

pub use get::LargeGet;
pub use put::LargePut;
pub use values::LargeValues;

/// Parts of a value that are written or read at a time: about 4 MiB, at which a device is at its sequential speed.
const PARTS_AT_ONCE: usize = 16;
