//! The states that were seen, by fingerprints of 128 bits: with a million million pairs of states, two that share one are
//! less likely than a failure of the machine.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

/// Hashes a fingerprint to a part of itself.
#[derive(Default)]
pub struct Part(u64);

impl Hasher for Part {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u128(&mut self, fingerprint: u128) {
        self.0 = fingerprint as u64;
    }
}

/// States that were seen.
#[derive(Default)]
pub struct Seen(HashSet<u128, BuildHasherDefault<Part>>);

impl Seen {
    /// Adds a state; whether it is new.
    pub fn add(&mut self, encoded: &[u8]) -> bool {
        self.0.insert(fingerprint(encoded))
    }
}

/// Two products of 64 bits, folded, for each eight bytes.
fn fingerprint(bytes: &[u8]) -> u128 {
    const ODD: [u64; 4] = [
        0x9E37_79B9_7F4A_7C15,
        0xC2B2_AE3D_27D4_EB4F,
        0x1656_67B1_9E37_79F9,
        0xD6E8_FEB8_6659_FD93,
    ];
    let fold = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        (product as u64) ^ (product >> 64) as u64
    };
    let (mut one, mut two) = (bytes.len() as u64 ^ ODD[2], ODD[3]);
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        let word = u64::from_le_bytes(word);
        one = fold(one ^ word, ODD[0]).wrapping_add(ODD[1] ^ word);
        two = fold(two.rotate_left(23) ^ word, ODD[1]).wrapping_add(word);
    }
    let (one, two) = (fold(one ^ ODD[3], ODD[2]), fold(two ^ ODD[2], ODD[3]));
    u128::from(one) << 64 | u128::from(two)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_of_a_million_short_codes_share_a_fingerprint() {
        let mut seen = Seen::default();
        for number in 0..1_000_000_u32 {
            assert!(seen.add(&number.to_le_bytes()), "{number}");
        }
        assert!(!seen.add(&7_u32.to_le_bytes()));
        assert!(seen.add(&[7, 0, 0]), "another length");
    }
}
