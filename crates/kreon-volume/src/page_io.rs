//! Single pages of the volume's own structures, straight from and to the device.

use kreon_base::{Error, PAGE_BYTES, PageBytes, PageNo, Result};
use kreon_device::{AlignedBuf, Device, Read, Write};

/// Pages read from the device.
pub struct Pages(AlignedBuf);

impl Pages {
    /// The pages, in the order they were asked for.
    pub fn pages(&self) -> impl Iterator<Item = &PageBytes> {
        self.0.as_chunks::<PAGE_BYTES>().0.iter()
    }

    /// The first page.
    ///
    /// # Errors
    /// `InvalidArgument` if none was asked for.
    pub fn first(&self) -> Result<&PageBytes> {
        self.pages()
            .next()
            .ok_or_else(|| Error::invalid("no page was asked for"))
    }
}

/// Reads `pages` at once.
pub fn read_pages(device: &dyn Device, pages: &[PageNo]) -> Result<Pages> {
    let mut buffer = AlignedBuf::new(pages.len() * PAGE_BYTES);
    let mut reads: Vec<_> = pages
        .iter()
        .zip(buffer.chunks_exact_mut(PAGE_BYTES))
        .map(|(page, bytes)| Read::new(page.offset_bytes(), bytes))
        .collect();
    device.read(&mut reads)?;
    drop(reads);
    Ok(Pages(buffer))
}

/// Writes `pages` at once.
pub fn write_pages(device: &dyn Device, pages: &[(PageNo, Box<PageBytes>)]) -> Result<()> {
    let mut buffer = AlignedBuf::new(pages.len() * PAGE_BYTES);
    for ((_, bytes), place) in pages.iter().zip(buffer.chunks_exact_mut(PAGE_BYTES)) {
        place.copy_from_slice(bytes.as_slice());
    }
    let writes: Vec<_> = pages
        .iter()
        .zip(buffer.chunks_exact(PAGE_BYTES))
        .map(|((page, _), bytes)| Write::new(page.offset_bytes(), bytes))
        .collect();
    device.write(&writes)
}

/// Writes zeroes to `pages` at once.
pub fn blank_pages(device: &dyn Device, pages: impl Iterator<Item = PageNo>) -> Result<()> {
    let blank: Vec<_> = pages
        .map(|page| (page, Box::new([0; PAGE_BYTES])))
        .collect();
    write_pages(device, &blank)
}

/// Whether the device is long enough to hold `page`.
pub fn is_there(device: &dyn Device, page: PageNo) -> bool {
    page.offset_bytes() + PAGE_BYTES as u64 <= device.len_bytes()
}
