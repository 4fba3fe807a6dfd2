//! Keys in hashed order, and values that tell their key.

/// Spreads `n` over all 64 bits: neighbours in number are far apart in order.
pub fn hash(n: u64) -> u64 {
    let mut x = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The key of record `n`: "user" and 26 digits, 30 bytes.
pub fn key(n: u64, key: &mut Vec<u8>) {
    use std::io::Write;
    key.clear();
    // Writing to a vector cannot fail.
    let _ = write!(key, "user{:026}", hash(n));
}

/// A value of `value`'s length that starts with the number of its record.
pub fn fill(n: u64, value: &mut [u8]) {
    for (word, bytes) in value.chunks_mut(8).enumerate() {
        let word = if word == 0 {
            n
        } else {
            hash(n ^ (word as u64) << 40)
        };
        bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
    }
}

/// The number of the record that a value was made for.
pub fn number(value: &[u8]) -> Option<u64> {
    value.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}
