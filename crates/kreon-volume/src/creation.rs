//! The first steps of creating a store, and how an unfinished creation is recognised.
//!
//! A device is formatted if it is empty, if its creation was cut short, or if the caller asks for it. A creation that was
//! cut short has a [`CreationMark`], which is durable before anything else is written. A file that was empty has another
//! sign: until the mark is durable, its length is exactly `CREATION_BYTES`, all zero.

use kreon_base::{PAGE_BYTES, PageNo, Result};
use kreon_device::Device;
use kreon_format::{CREATION_PAGE, CreationMark, SUPERBLOCK_PAGES, StoreId};

use super::page_io::{blank_pages, is_there, read_pages, write_pages};
use super::remains;

/// The length that an empty file gets before its mark is written.
const CREATION_BYTES: u64 = 3 * PAGE_BYTES as u64;

/// Makes the mark durable, and then erases the former content of the device.
///
/// # Errors
/// `Io`, `OutOfSpace`.
pub fn begin(device: &dyn Device, store: StoreId) -> Result<()> {
    let old_bytes = device.len_bytes();
    device.grow(CREATION_BYTES)?;
    let mark = CreationMark { store };
    write_pages(device, &[(CREATION_PAGE, mark.encode())])?;
    device.flush()?;
    match old_bytes > CREATION_BYTES {
        true => {
            // The former content of the other superblock slots is not of this store.
            let is_other = |page: &PageNo| *page != CREATION_PAGE && is_there(device, *page);
            blank_pages(device, SUPERBLOCK_PAGES.into_iter().filter(is_other))?;
            remains::erase(device)
        }
        false => Ok(()),
    }
}

/// Whether a creation was cut short here, and its store never opened.
///
/// # Errors
/// `Io`.
pub fn is_unfinished(device: &dyn Device) -> Result<bool> {
    if !is_there(device, CREATION_PAGE) {
        return Ok(false);
    }
    if let Ok(mark) = CreationMark::decode(read_pages(device, &[CREATION_PAGE])?.first()?) {
        return Ok(!remains::is_finished(device, mark)?);
    }
    if device.len_bytes() != CREATION_BYTES {
        return Ok(false);
    }
    let pages: Vec<_> = (0..CREATION_BYTES / PAGE_BYTES as u64)
        .map(PageNo)
        .collect();
    let bytes = read_pages(device, &pages)?;
    Ok(bytes.pages().all(|page| *page == [0; PAGE_BYTES]))
}
