//! The hash of a key. Its value is persisted, in heads of long keys and by the partition of each key.

use kreon_base::KeyHash;

use super::seal::ItemSeal;

/// What the seed of the second lane differs in.
const SECOND: u64 = u64::from_le_bytes(*b"lane two");

/// 128-bit hash of a key, keyed by the store: two independent lanes of 64 bits, the first one in the lower half. It does not
/// resist keys chosen to collide by those who know the store's number.
///
/// The hash stands for the part of a long key that a tombstone does not hold.
pub fn key_hash(seal: ItemSeal, key: &[u8]) -> u128 {
    // The length belongs into the seed, says `KeyHash`: its last word is filled up.
    let seed = seal.store.0 ^ key.len() as u64;
    let lane = |seed| u128::from(KeyHash::new(seed).bytes(key).finish());
    lane(seed) | lane(seed ^ SECOND) << 64
}

/// The partition of a key with this hash, 0 to `partitions - 1`; 0 if there is none. It uses the upper lane alone, so
/// within a partition the lower one is as good as new for tables.
pub const fn partition_of(hash: u128, partitions: u32) -> u32 {
    let lane = (hash >> 64) as u64;
    // The product's upper half: in range, and each partition has the same share of all lanes. No division.
    ((lane as u128 * partitions as u128) >> 64) as u32
}
