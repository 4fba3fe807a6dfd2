//! Chance, for commands that choose. Not for secrets.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A source of random numbers (SplitMix64, Steele, Lea and Flood 2014), shared by all threads.
#[derive(Debug)]
pub(crate) struct Random {
    state: AtomicU64,
}

impl Random {
    pub(crate) fn new() -> Self {
        Self {
            state: AtomicU64::new(RandomState::new().hash_one(0)),
        }
    }

    pub(crate) fn next(&self) -> u64 {
        let state = self.state.fetch_add(STEP, Ordering::Relaxed);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `end`, each equally likely but for 2^-64 of `end`; 0 if `end` is 0.
    pub(crate) fn below(&self, end: u64) -> u64 {
        let product = u128::from(self.next()) * u128::from(end);
        u64::try_from(product >> 64).unwrap_or(0)
    }

    /// As [`below`](Self::below).
    pub(crate) fn index(&self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX);
        usize::try_from(self.below(end)).unwrap_or(0)
    }

    /// A key from `first` to `last`, which have the keys of a database between them: random in the eight bytes in which they
    /// begin to differ. Keys behind large gaps are likelier than others to follow it.
    pub(crate) fn key_between(&self, first: &[u8], last: &[u8]) -> Vec<u8> {
        let common = first.iter().zip(last).take_while(|(a, b)| a == b).count();
        let word = |key: &[u8]| {
            let mut bytes = [0; 8];
            for (to, from) in bytes.iter_mut().zip(key.iter().skip(common)) {
                *to = *from;
            }
            u64::from_be_bytes(bytes)
        };
        let (low, high) = (word(first), word(last));
        let chosen = low.saturating_add(self.below(high.saturating_sub(low).saturating_add(1)));
        if chosen == low {
            // With the bytes of the word it could lie behind the first key, which is shorter.
            return first.to_vec();
        }
        let mut key = first.get(..common).unwrap_or_default().to_vec();
        key.extend_from_slice(&chosen.to_be_bytes());
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spread_evenly() {
        let random = Random {
            state: AtomicU64::new(7),
        };
        let mut hits = [0_u32; 10];
        for _ in 0..10_000 {
            hits[random.index(10)] += 1;
        }
        assert!(
            hits.iter().all(|hits| (850..1150).contains(hits)),
            "{hits:?}"
        );
        assert_eq!(random.below(0), 0);
        for _ in 0..100 {
            let key = random.key_between(b"aab", b"aax");
            assert!(
                *key >= b"aab"[..] && *key <= [b"aax".as_slice(), &[0; 7]].concat()[..],
                "{key:?}"
            );
        }
    }
}
