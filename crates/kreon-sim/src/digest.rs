//! Hashes of contents, fast rather than safe from malice.

use kreon_base::PageBytes;

/// Mixes all bits of a word.
pub(crate) fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// What `digest` adds to a sum from its place `at`; nothing if it is 0.
pub(crate) fn placed(at: u64, digest: u64) -> u64 {
    match digest {
        0 => 0,
        _ => mix(digest ^ mix(at.wrapping_add(0x9e37_79b9_7f4a_7c15))),
    }
}

/// The hash of a page; 0 if it is all zeroes.
pub(crate) fn of(page: &PageBytes) -> u64 {
    if *page == [0; kreon_base::PAGE_BYTES] {
        return 0;
    }
    // Four independent chains, so that the multiplications overlap.
    let mut lanes = [1u64, 2, 3, 4];
    for words in page.as_chunks::<32>().0 {
        for (lane, word) in lanes.iter_mut().zip(words.as_chunks::<8>().0) {
            *lane = (*lane ^ u64::from_le_bytes(*word)).wrapping_mul(0x9fb2_1c65_1e98_df25);
            *lane ^= *lane >> 29;
        }
    }
    let sum = lanes.iter().fold(0, |sum, lane| mix(sum ^ mix(*lane)));
    sum.max(1)
}
