//! Files and block devices.

mod file_device;
mod kind;
mod opening;
mod options;

pub use file_device::FileDevice;
pub use options::{Facility, FileOptions};
