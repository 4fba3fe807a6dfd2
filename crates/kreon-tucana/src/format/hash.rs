//! The hash of a key that stands in leaves (`Tucana 2.2.1`).

use kreon_base::KeyHash;

/// The hash of a key. Keys that are chosen to collide cost reads of their records, nothing else.
#[inline]
pub fn key_hash(key: &[u8]) -> u32 {
    let hash = KeyHash::new(key.len() as u64).bytes(key).finish();
    (hash >> 32) as u32
}
