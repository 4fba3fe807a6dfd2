//! Bytes of a page that say which page and version they are, in every word.

use kreon_base::{PAGE_BYTES, PageBytes};

/// What the pages of a device hold at first.
#[derive(Clone, Copy, Debug)]
pub enum Content {
    /// Zeroes.
    Zero,
    /// Version 0 of each page.
    Numbered,
}

pub fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn word(page: u64, version: u64, i: usize) -> u64 {
    match i {
        0 => page,
        1 => version,
        _ => mix(page ^ version << 32 ^ (i as u64) << 52),
    }
}

/// The bytes of a version of a page.
pub fn fill(page: u64, version: u64) -> Box<PageBytes> {
    let mut bytes = Box::new([0; PAGE_BYTES]);
    for (i, chunk) in bytes.chunks_exact_mut(8).enumerate() {
        chunk.copy_from_slice(&word(page, version, i).to_le_bytes());
    }
    bytes
}

/// The version, if every byte is of one version of this page.
pub fn verify(page: u64, bytes: &PageBytes) -> Result<u64, String> {
    let words: Vec<u64> = bytes
        .chunks_exact(8)
        .map(|chunk| u64::from_le_bytes(chunk.try_into().unwrap()))
        .collect();
    let version = words[1];
    for (i, &found) in words.iter().enumerate() {
        if found != word(page, version, i) {
            return Err(format!(
                "page {page} version {version}: word {i} is {found:#x}"
            ));
        }
    }
    Ok(version)
}
