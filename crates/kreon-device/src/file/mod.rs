//! Files and block devices.

mod file_device;
#[cfg(feature = "comparison")]
mod file_map;
mod file_queue;
mod holders;
mod kind;
mod opening;
mod options;

pub use file_device::FileDevice;
#[cfg(feature = "comparison")]
pub use file_map::{FileMap, MapAdvice};
pub(crate) use holders::Holder;
pub(crate) use kind::Kind;
pub use options::{Facility, FileOptions};
