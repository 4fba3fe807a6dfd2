//! What a device holds at one moment.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use kreon_base::{PAGE_BYTES, PageBytes};

use crate::digest;

/// Pages of a chunk: as many as a word has bits.
pub(crate) const CHUNK_PAGES: u64 = 64;

const PAGE: u64 = PAGE_BYTES as u64;

/// The content of a device: its length and its bytes. Pages that were never written read as zeroes
/// and take no memory. A clone shares all pages with the original, and costs a word for each 256 KiB
/// that hold something; a change of the clone copies what it touches.
#[derive(Clone, Default)]
pub struct Image {
    len_bytes: u64,
    chunks: BTreeMap<u64, Arc<Chunk>>,
}

/// 64 neighbouring pages.
#[derive(Clone)]
struct Chunk {
    pages: [Option<Arc<Page>>; CHUNK_PAGES as usize],
    digest: OnceLock<u64>,
}

#[derive(Clone)]
struct Page {
    bytes: PageBytes,
    digest: OnceLock<u64>,
}

impl Chunk {
    fn empty() -> Self {
        Self {
            pages: [const { None }; CHUNK_PAGES as usize],
            digest: OnceLock::new(),
        }
    }

    /// The place of a page, for a change.
    fn page_mut(&mut self, page: u64) -> &mut Option<Arc<Page>> {
        self.digest.take();
        &mut self.pages[(page % CHUNK_PAGES) as usize]
    }

    /// Pages that are all zeroes count as absent ones.
    fn digest(&self) -> u64 {
        *self.digest.get_or_init(|| {
            let pages = self.pages.iter().zip(0u64..);
            pages.fold(0, |sum: u64, (page, index)| {
                let page = page.as_ref().map_or(0, |page| page.digest());
                sum.wrapping_add(digest::placed(index, page))
            })
        })
    }

    fn holds_any(&self) -> bool {
        self.pages.iter().any(Option::is_some)
    }
}

impl Page {
    /// 0 if it is all zeroes.
    fn digest(&self) -> u64 {
        *self.digest.get_or_init(|| digest::of(&self.bytes))
    }

    /// Puts `part` at `within`; copies what it does not replace only if somebody else shares it.
    fn put(place: &mut Option<Arc<Self>>, within: usize, part: &[u8]) {
        if let Ok(bytes) = <&PageBytes>::try_from(part) {
            let page = Self {
                bytes: *bytes,
                digest: OnceLock::new(),
            };
            *place = Some(Arc::new(page));
            return;
        }
        let page = place.get_or_insert_with(|| {
            Arc::new(Self {
                bytes: [0; PAGE_BYTES],
                digest: OnceLock::new(),
            })
        });
        let page = Arc::make_mut(page);
        page.digest.take();
        page.bytes[within..within + part.len()].copy_from_slice(part);
    }
}

impl Image {
    /// `len_bytes` zeroes.
    pub fn new(len_bytes: u64) -> Self {
        Self {
            len_bytes,
            chunks: BTreeMap::new(),
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

    /// A number that two images share if they hold the same, and otherwise, but for one chance in
    /// 2^64, do not. What was computed for a page is kept with it.
    pub fn digest(&self) -> u64 {
        let chunks = self.chunks.iter();
        chunks.fold(
            digest::placed(u64::MAX, self.len_bytes),
            |sum, (at, chunk)| sum.wrapping_add(digest::placed(*at, chunk.digest())),
        )
    }

    /// Copies the bytes at `offset` into `into`; zeroes where nothing was written or beyond the end.
    pub fn read(&self, offset: u64, into: &mut [u8]) {
        let mut last: Option<(u64, Option<&Arc<Chunk>>)> = None;
        for_each_page(offset, into.len(), |page, within, range| {
            let Some(part) = into.get_mut(range) else {
                return;
            };
            let number = page / CHUNK_PAGES;
            let chunk = match last {
                Some((same, chunk)) if same == number => chunk,
                _ => self.chunks.get(&number),
            };
            last = Some((number, chunk));
            let found = chunk.and_then(|chunk| chunk.pages[(page % CHUNK_PAGES) as usize].as_ref());
            match found {
                Some(page) => part.copy_from_slice(&page.bytes[within..within + part.len()]),
                None => part.fill(0),
            }
        });
    }

    /// Whether no page of a range was written, or each was made zeroes as a whole since.
    pub fn is_blank(&self, offset: u64, len_bytes: u64) -> bool {
        let pages = offset / PAGE..offset.saturating_add(len_bytes).div_ceil(PAGE);
        let numbers = pages.start / CHUNK_PAGES..pages.end.div_ceil(CHUNK_PAGES);
        self.chunks.range(numbers).all(|(number, chunk)| {
            let pages_of = (number * CHUNK_PAGES..).zip(&chunk.pages);
            pages_of
                .filter(|(page, _)| pages.contains(page))
                .all(|(_, held)| held.is_none())
        })
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
            let chunk = self.chunks.entry(page / CHUNK_PAGES);
            let chunk = chunk.or_insert_with(|| Arc::new(Chunk::empty()));
            let place = Arc::make_mut(chunk).page_mut(page);
            Page::put(place, within, &bytes[range]);
        });
    }

    /// Makes `len_bytes` at `offset` zeroes.
    pub fn zero(&mut self, offset: u64, len_bytes: u64) {
        let range = offset..offset.saturating_add(len_bytes);
        let chunks =
            range.start / PAGE / CHUNK_PAGES..range.end.div_ceil(PAGE).div_ceil(CHUNK_PAGES);
        // A device may be far longer than what it holds: only chunks that are there are visited.
        for (number, chunk) in self.chunks.range_mut(chunks) {
            zero_in_chunk(*number, chunk, &range);
        }
        self.chunks.retain(|_, chunk| chunk.holds_any());
    }

    /// Takes over what `other` holds in `range`, in bytes: a device that gives back older contents.
    pub fn put_back(&mut self, other: &Self, range: Range<u64>) {
        let len_bytes = usize::try_from(range.end - range.start).unwrap_or(0);
        self.write(range.start, &other.bytes(range.start, len_bytes));
    }

    /// The pages that hold something: numbers of 64, each with a bit for each.
    pub(crate) fn written_pages(&self) -> impl Iterator<Item = (u64, u64)> {
        self.chunks.iter().map(|(number, chunk)| {
            let pages = chunk.pages.iter().zip(0..);
            let bits = pages.fold(0, |bits, (page, at)| bits | u64::from(page.is_some()) << at);
            (*number, bits)
        })
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
        let within = (at % PAGE) as usize;
        let part_bytes = (PAGE_BYTES - within).min(len_bytes - done);
        each(at / PAGE, within, done..done + part_bytes);
        done += part_bytes;
    }
}

/// Makes zeroes of the part of a chunk that lies in `range`.
fn zero_in_chunk(number: u64, chunk: &mut Arc<Chunk>, range: &Range<u64>) {
    let first = number * CHUNK_PAGES;
    let pages = (range.start / PAGE).max(first)..range.end.div_ceil(PAGE).min(first + CHUNK_PAGES);
    for page in pages {
        if chunk.pages[(page % CHUNK_PAGES) as usize].is_none() {
            continue;
        }
        let place = Arc::make_mut(chunk).page_mut(page);
        let start = page * PAGE;
        let from = (range.start.clamp(start, start + PAGE) - start) as usize;
        let to = (range.end.clamp(start, start + PAGE) - start) as usize;
        match to - from {
            PAGE_BYTES => *place = None,
            len_bytes => Page::put(place, from, &vec![0; len_bytes]),
        }
    }
}

impl PartialEq for Image {
    fn eq(&self, other: &Self) -> bool {
        self.digest() == other.digest()
    }
}

impl Eq for Image {}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pages: u32 = self
            .written_pages()
            .map(|(_, bits)| bits.count_ones())
            .sum();
        write!(f, "Image({} bytes, {pages} pages)", self.len_bytes)
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
    fn blank_is_what_no_page_holds() {
        let mut image = Image::new(1 << 20);
        assert!(image.is_blank(0, 1 << 20));
        image.write(300 << 10, &[0]);
        assert!(image.is_blank(0, 300 << 10) && image.is_blank(304 << 10, 1 << 20));
        assert!(!image.is_blank(0, (300 << 10) + 1) && !image.is_blank((304 << 10) - 1, 1));
        image.zero(300 << 10, 4096);
        assert!(image.is_blank(0, 1 << 20));
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
