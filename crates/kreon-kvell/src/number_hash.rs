//! Tables of numbers.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use kreon_base::KeyHash;

/// A table whose keys are numbers, or hashes: a multiplication a search, where the standard hash takes some 20 ns. It does
/// not resist numbers that are chosen to collide, so they must be places, counters, or hashes with a secret.
pub type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHash>>;

/// Hashes one or more numbers.
#[derive(Clone, Copy, Debug)]
pub struct NumberHash(KeyHash);

impl Default for NumberHash {
    fn default() -> Self {
        Self(KeyHash::new(0))
    }
}

impl Hasher for NumberHash {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = self.0.word(bytes.len() as u64).bytes(bytes);
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = self.0.word(number);
    }

    fn write_u128(&mut self, number: u128) {
        self.0 = self.0.word(number as u64).word((number >> 64) as u64);
    }

    fn finish(&self) -> u64 {
        self.0.finish()
    }
}
