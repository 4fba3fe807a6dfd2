//! A file that is no store, for a resync.

use kreon_base::{Result, SEGMENT_BYTES};
use kreon_device::Device;
use kreon_format::SUPERBLOCK_PAGES;
use kreon_volume::page_io::blank_pages;

/// Makes a file that has room for them start without superblocks, durably.
///
/// # Errors
/// Those of the device.
pub fn blank_slots(device: &dyn Device) -> Result<()> {
    if device.len_bytes() < SEGMENT_BYTES {
        device.grow(SEGMENT_BYTES)?;
    }
    blank_pages(device, SUPERBLOCK_PAGES.into_iter())?;
    device.flush()
}
