//! Keys that share much with each other, and keys near them.

use arbitrary::{Result, Unstructured};
use kreon_base::KEY_BYTES_MAX;
use kreon_format::LONG_KEY_STORED_BYTES;

/// Lengths at which something in a node changes: of a head, of a length's width, of the stored part.
const RUNS: [usize; 12] = [1, 7, 8, 9, 247, 255, 256, 264, 1015, 1023, 1024, 1026];

/// A key of a few pieces.
pub fn any_key(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mut key = Vec::new();
    for _ in 0..u.int_in_range(0..=4)? {
        match u.int_in_range(0..=5)? {
            0 => key.push(0),
            1 => key.push(0xff),
            2 => key.extend(b"user"),
            3 => key.resize(key.len() + *u.choose(&RUNS)?, b'x'),
            4 => key.resize(key.len() + 8, 0),
            _ => key.extend(u.bytes(2)?),
        }
    }
    if u.ratio(1, 60)? {
        key.resize(KEY_BYTES_MAX, b'x');
    }
    key.truncate(KEY_BYTES_MAX);
    Ok(key)
}

/// The part of `key` that a node holds.
pub fn stored(key: &[u8]) -> &[u8] {
    &key[..key.len().min(LONG_KEY_STORED_BYTES)]
}

/// Keys just before, at and behind those of `keys`, and some more.
pub fn near(keys: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut near = vec![vec![], vec![0], vec![0xff; 2000]];
    for key in keys {
        near.push(key.clone());
        near.push([key, &[0][..]].concat());
        if let Some((last, front)) = key.split_last() {
            near.push(front.to_vec());
            near.push([front, &[last.wrapping_add(1)]].concat());
        }
    }
    near.retain(|key| key.len() <= KEY_BYTES_MAX);
    near
}
