//! The hash of keys, with seeds that clients do not know: keys that a client chooses do not share hashes more often than others.

use std::collections::hash_map;
use std::hash::{BuildHasher, Hasher};
use std::sync::LazyLock;

static HASHES: LazyLock<ahash::RandomState> = LazyLock::new(|| {
    let random = hash_map::RandomState::new();
    let seed = |number: u64| random.hash_one(number);
    ahash::RandomState::with_seeds(seed(0), seed(1), seed(2), seed(3))
});

/// The hash of a key of a database.
pub(super) fn key_hash(db: usize, key: &[u8]) -> u64 {
    HASHES.hash_one((db, key))
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
