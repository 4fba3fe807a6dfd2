//! A device in the memory of the process: a transfer is a copy.

use std::sync::{PoisonError, RwLock};

use kreon_base::{Error, PAGE_BYTES, PageBytes, Result};
use kreon_device::{Device, DeviceStats, Read, Write};

const PAGE: u64 = PAGE_BYTES as u64;

/// Pages in memory, each under a lock of its own. It counts nothing: that would be memory that all threads write to.
pub struct RamDevice(Vec<RwLock<PageBytes>>);

impl RamDevice {
    /// Pages, every word of which is the page's number.
    pub fn new(pages: u64) -> Self {
        let numbered = |page| {
            let mut bytes = [0; PAGE_BYTES];
            fill(page, &mut bytes);
            RwLock::new(bytes)
        };
        Self((0..pages).map(numbered).collect())
    }

    /// The page at an offset.
    fn at(&self, offset: u64) -> Result<&RwLock<PageBytes>> {
        let page = self.0.get((offset / PAGE) as usize);
        match page {
            Some(page) if offset.is_multiple_of(PAGE) => Ok(page),
            _ => Err(Error::invalid(format!("no page begins at {offset}"))),
        }
    }

    fn read_one(&self, read: &mut Read<'_>) -> Result<()> {
        let mut offset = read.offset;
        for buffer in &mut read.buffers {
            let (pages, rest) = buffer.as_chunks_mut::<PAGE_BYTES>();
            if !rest.is_empty() {
                return Err(Error::invalid("a read of a part of a page"));
            }
            for page in pages {
                let bytes = self.at(offset)?.read();
                page.copy_from_slice(&*bytes.unwrap_or_else(PoisonError::into_inner));
                offset += PAGE;
            }
        }
        Ok(())
    }

    fn write_one(&self, write: &Write<'_>) -> Result<()> {
        let mut offset = write.offset;
        for buffer in &write.buffers {
            let (pages, rest) = buffer.as_chunks::<PAGE_BYTES>();
            if !rest.is_empty() {
                return Err(Error::invalid("a write of a part of a page"));
            }
            for page in pages {
                let bytes = self.at(offset)?.write();
                bytes
                    .unwrap_or_else(PoisonError::into_inner)
                    .copy_from_slice(page);
                offset += PAGE;
            }
        }
        Ok(())
    }
}

/// Makes every word of a page its number.
pub fn fill(page: u64, bytes: &mut PageBytes) {
    for word in bytes.as_chunks_mut::<8>().0 {
        *word = page.to_le_bytes();
    }
}

impl Device for RamDevice {
    fn block_bytes(&self) -> u32 {
        PAGE_BYTES as u32
    }

    fn len_bytes(&self) -> u64 {
        self.0.len() as u64 * PAGE
    }

    fn len_bytes_max(&self) -> u64 {
        self.len_bytes()
    }

    fn grow(&self, len_bytes: u64) -> Result<()> {
        match len_bytes <= self.len_bytes() {
            true => Ok(()),
            false => Err(Error::invalid("this device does not grow")),
        }
    }

    fn allocate(&self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }

    fn discard(&self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }

    fn read(&self, reads: &mut [Read<'_>]) -> Result<()> {
        let mut first = Ok(());
        for read in reads {
            read.outcome = self.read_one(read);
            first = first.and(read.outcome.clone());
        }
        first
    }

    fn write(&self, writes: &[Write<'_>]) -> Result<()> {
        writes.iter().try_for_each(|write| self.write_one(write))
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn stats(&self) -> DeviceStats {
        DeviceStats::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_its_neighbours_are_as_before() {
        let device = RamDevice::new(4);
        let mut two = vec![0; 2 * PAGE_BYTES];
        device.read_at(PAGE, &mut two).expect("a read");
        assert_eq!((two[0], two[PAGE_BYTES]), (1, 2));
        device
            .write_at(2 * PAGE, &[9; PAGE_BYTES])
            .expect("a write");
        device.read_at(PAGE, &mut two).expect("a read");
        assert_eq!((two[0], two[PAGE_BYTES]), (1, 9));
    }

    #[test]
    fn what_is_no_page_of_the_device_is_refused() {
        let device = RamDevice::new(2);
        let mut page = [0; PAGE_BYTES];
        assert!(device.read_at(2 * PAGE, &mut page).is_err());
        assert!(device.read_at(512, &mut page).is_err());
        assert!(device.write_at(0, &[0; 512]).is_err());
    }
}
