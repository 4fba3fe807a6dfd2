//! Keys in hashed order, and values that tell their key.

/// Spreads `n` over all 64 bits: neighbours in number are far apart in order.
pub fn hash(n: u64) -> u64 {
    let mut x = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// What [`hash`] made `hashed` of: it is one to one, so no two records share a key.
pub fn unhash(hashed: u64) -> u64 {
    let mut x = hashed;
    x = (x ^ (x >> 31) ^ (x >> 62)).wrapping_mul(0x3196_42b2_d24d_8ec3);
    x = (x ^ (x >> 27) ^ (x >> 54)).wrapping_mul(0x96de_1b17_3f11_9089);
    x = x ^ (x >> 30) ^ (x >> 60);
    x.wrapping_sub(0x9e37_79b9_7f4a_7c15)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_go_back_to_their_numbers() {
        for n in (0..1000).chain([u64::MAX, 1 << 63, 0x1234_5678_9abc_def0]) {
            assert_eq!(unhash(hash(n)), n);
        }
    }
}
