//! Files and block devices.

mod file_device;
mod file_map;
mod kind;
mod opening;
mod options;

pub use file_device::FileDevice;
pub use file_map::{FileMap, MapAdvice};
pub use options::{Facility, FileOptions};
