//! The hash of keys, with a seed that clients do not know.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::LazyLock;

static SEED: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0));

/// The hash of a key of a database. Costs a multiplication for eight bytes.
pub(super) fn key_hash(db: usize, key: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| {
        let product = u128::from(hash ^ word) * u128::from(FACTOR);
        // Both halves: the upper bits of a word count, too.
        (product >> 64) as u64 ^ product as u64
    };
    let mut hash = mix(*SEED, db as u64 ^ (key.len() as u64) << 32);
    let (words, rest) = key.as_chunks::<8>();
    for word in words {
        hash = mix(hash, u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    mix(hash, u64::from_le_bytes(last))
}

/// Takes a [`key_hash`] for a table as it is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = key_hash(0, bytes) ^ self.0.rotate_left(1);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn keys_that_differ_in_little_have_hashes_that_differ_in_all_parts() {
        let keys = (0..4096_u32).map(|number| format!("e\0\0\0\0\0\0\0\x01field:{number:012}"));
        let hashes: Vec<u64> = keys.map(|key| key_hash(0, key.as_bytes())).collect();
        for shift in [0, 20, 40] {
            let parts: HashSet<u64> = hashes.iter().map(|hash| hash >> shift & 0xffff).collect();
            // Of 4,096 random draws out of 65,536 about 3,970 are distinct.
            assert!(parts.len() > 3850, "{} at {shift}", parts.len());
        }
        assert_ne!(key_hash(0, b"k"), key_hash(1, b"k"));
        assert_ne!(key_hash(0, b"k"), key_hash(0, b"k\0"));
    }
}
