//! What a device holds at one moment.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use kreon_base::{PAGE_BYTES, PageBytes};

/// The content of a device: its length and its bytes. Pages that were never written read as zeroes
/// and take no memory; a clone shares its pages with the original.
#[derive(Clone, Default)]
pub struct Image {
    len_bytes: u64,
    pages: HashMap<u64, Arc<PageBytes>>,
}

impl Image {
    /// `len_bytes` zeroes.
    pub fn new(len_bytes: u64) -> Self {
        Self {
            len_bytes,
            pages: HashMap::new(),
        }
    }

    /// Length in bytes.
    pub fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Changes the length. What is cut off is gone.
    pub fn set_len(&mut self, len_bytes: u64) {
        if len_bytes < self.len_bytes {
            self.zero(len_bytes, self.len_bytes - len_bytes);
        }
        self.len_bytes = len_bytes;
    }

    /// Copies the bytes at `offset` into `into`; zeroes where nothing was written or beyond the end.
    pub fn read(&self, offset: u64, into: &mut [u8]) {
        for_each_page(offset, into.len(), |page, within, range| {
            let Some(part) = into.get_mut(range) else {
                return;
            };
            match self.pages.get(&page) {
                Some(bytes) => part.copy_from_slice(&bytes[within..within + part.len()]),
                None => part.fill(0),
            }
        });
    }

    /// The `len_bytes` at `offset`.
    pub fn bytes(&self, offset: u64, len_bytes: usize) -> Vec<u8> {
        let mut bytes = vec![0; len_bytes];
        self.read(offset, &mut bytes);
        bytes
    }

    /// Writes `bytes` at `offset`; what lies beyond the end is dropped.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        let room = usize::try_from(self.len_bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
        for_each_page(offset, bytes.len().min(room), |page, within, range| {
            let page = self.pages.entry(page).or_insert_with(zero_page);
            let part = &bytes[range];
            Arc::make_mut(page)[within..within + part.len()].copy_from_slice(part);
        });
    }

    /// Makes `len_bytes` at `offset` zeroes.
    pub fn zero(&mut self, offset: u64, len_bytes: u64) {
        let range = offset..offset.saturating_add(len_bytes);
        let pages = range.start / PAGE_BYTES as u64..range.end.div_ceil(PAGE_BYTES as u64);
        if pages.end - pages.start > self.pages.len() as u64 {
            // A device may be far longer than what it holds.
            self.pages
                .retain(|&page, bytes| !zero_part(page, bytes, &range));
            return;
        }
        for page in pages {
            if let Entry::Occupied(mut entry) = self.pages.entry(page)
                && zero_part(page, entry.get_mut(), &range)
            {
                entry.remove();
            }
        }
    }

    /// Numbers of the pages that hold something.
    pub(crate) fn written_pages(&self) -> impl Iterator<Item = u64> {
        self.pages.keys().copied()
    }

    /// Flips one bit (0 to 7) of the byte at `offset`.
    pub fn flip_bit(&mut self, offset: u64, bit: u8) {
        let mut byte = [0];
        self.read(offset, &mut byte);
        self.write(offset, &[byte[0] ^ (1 << (bit % 8))]);
    }
}

/// Calls `each(page, offset within the page, range of the buffer)` for the parts of a range.
fn for_each_page(offset: u64, len_bytes: usize, mut each: impl FnMut(u64, usize, Range<usize>)) {
    let mut done = 0;
    while done < len_bytes {
        let at = offset + done as u64;
        let within = (at % PAGE_BYTES as u64) as usize;
        let part_bytes = (PAGE_BYTES - within).min(len_bytes - done);
        each(at / PAGE_BYTES as u64, within, done..done + part_bytes);
        done += part_bytes;
    }
}

/// Makes zeroes of the part of `page` that lies in `range`; whether that is all of it.
fn zero_part(page: u64, bytes: &mut Arc<PageBytes>, range: &Range<u64>) -> bool {
    let start = page * PAGE_BYTES as u64;
    let end = start + PAGE_BYTES as u64;
    let from = (range.start.clamp(start, end) - start) as usize;
    let to = (range.end.clamp(start, end) - start) as usize;
    let whole = to - from == PAGE_BYTES;
    if from < to && !whole {
        Arc::make_mut(bytes)[from..to].fill(0);
    }
    whole
}

fn zero_page() -> Arc<PageBytes> {
    Arc::new([0; PAGE_BYTES])
}

impl PartialEq for Image {
    fn eq(&self, other: &Self) -> bool {
        let covers = |a: &Self, b: &Self| {
            a.pages
                .iter()
                .all(|(number, page)| match b.pages.get(number) {
                    Some(same) => Arc::ptr_eq(page, same) || page == same,
                    None => page.iter().all(|&byte| byte == 0),
                })
        };
        self.len_bytes == other.len_bytes && covers(self, other) && covers(other, self)
    }
}

impl Eq for Image {}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Image({} bytes, {} pages)",
            self.len_bytes,
            self.pages.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_where_they_were_written() {
        let mut image = Image::new(64 << 10);
        let bytes: Vec<u8> = (0..10_000).map(|n| n as u8 | 1).collect();
        image.write(4000, &bytes);
        assert_eq!(image.bytes(4000, 10_000), bytes);
        assert_eq!(image.bytes(0, 4000), vec![0; 4000]);
        image.write((64 << 10) - 2, &[1, 2, 3, 4]);
        assert_eq!(
            image.bytes((64 << 10) - 2, 4),
            [1, 2, 0, 0],
            "cut at the end"
        );
    }

    #[test]
    fn a_clone_does_not_see_later_writes() {
        let mut image = Image::new(8192);
        image.write(0, &[1; 8192]);
        let before = image.clone();
        image.write(100, &[2]);
        assert_eq!(before.bytes(100, 1), [1]);
        assert_ne!(before, image);
    }

    #[test]
    fn zeroed_parts_and_untouched_parts_are_equal() {
        for (offset, len_bytes) in [(0, 16384), (512, 512), (4096, 8192), (100, 9000)] {
            let mut image = Image::new(16384);
            image.write(0, &[9; 16384]);
            image.zero(offset, len_bytes);
            let kept = image.bytes(0, 16384).iter().filter(|&&b| b == 9).count();
            assert_eq!(kept as u64, 16384 - len_bytes);
            image.zero(0, u64::MAX);
            assert_eq!(image, Image::new(16384));
        }
    }

    #[test]
    fn a_cut_tail_does_not_come_back() {
        let mut image = Image::new(8192);
        image.write(0, &[3; 8192]);
        image.set_len(512);
        image.set_len(8192);
        assert_eq!(image.bytes(511, 2), [3, 0]);
    }

    #[test]
    fn a_flipped_bit_flips_back() {
        let mut image = Image::new(4096);
        image.flip_bit(77, 3);
        assert_eq!(image.bytes(77, 1), [8]);
        image.flip_bit(77, 3);
        assert_eq!(image, Image::new(4096));
    }
}
