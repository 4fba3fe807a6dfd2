//! Keys, and values that tell whether they are what was written for their key.
//!
//! A value: version (4 bytes) | check over key and version (4) | bytes of a table, from a place that the check
//! picks. So a value of another key, an older value under a newer version's head, or one cut short is noticed
//! without anybody remembering what was written.

use std::io::Write;
use std::sync::LazyLock;

use super::mix::Mix;
use crate::keys::hash;

/// Head of a value.
const HEAD_BYTES: usize = 8;

/// Longest value plus the places where it may start.
const TABLE_BYTES: usize = 8192;
const STARTS: u32 = 4096;

/// Bytes that no compressor makes shorter.
static TABLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let words = (0..TABLE_BYTES as u64 / 8).flat_map(|n| hash(n ^ 0x7ab1e).to_le_bytes());
    words.collect()
});

/// Puts the key of record `number` into `key`: "user" and digits, in hashed order.
pub fn key(mix: Mix, number: u64, key: &mut Vec<u8>) {
    key_of_digits(mix, hash(number), key);
}

/// Puts the key with these digits into `key`.
pub fn key_of_digits(mix: Mix, digits: u64, key: &mut Vec<u8>) {
    key.clear();
    let width = mix.key_bytes() - 4;
    // Writing to a vector cannot fail.
    let _ = write!(key, "user{digits:0width$}");
}

/// Puts a value of record `number` into `value`.
pub fn value(mix: Mix, number: u64, version: u32, value: &mut Vec<u8>) {
    let check = check(number, version);
    value.clear();
    value.extend_from_slice(&version.to_le_bytes());
    value.extend_from_slice(&check.to_le_bytes());
    let start = (check % STARTS) as usize;
    let body_bytes = mix.value_bytes(number) - HEAD_BYTES;
    value.extend_from_slice(&TABLE[start..start + body_bytes]);
}

/// Whether `value` is one that was made for record `number`: its length, its head and the last bytes of its body.
pub fn is_value(mix: Mix, number: u64, value: &[u8]) -> bool {
    let Some((head, body)) = value.split_first_chunk::<HEAD_BYTES>() else {
        return false;
    };
    let (version, told) = head.split_at(4);
    let word = |bytes: &[u8]| {
        bytes
            .first_chunk()
            .map_or(0, |bytes| u32::from_le_bytes(*bytes))
    };
    let expected = check(number, word(version));
    if value.len() != mix.value_bytes(number) || word(told) != expected {
        return false;
    }
    let start = (expected % STARTS) as usize;
    let tail = body.len().saturating_sub(8);
    body[tail..] == TABLE[start + tail..start + body.len()]
}

/// The version in the head of a value.
pub fn version(value: &[u8]) -> Option<u32> {
    value.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

/// Whether `value` fits `key`, for scans, which do not know the number: by the key's digits.
pub fn fits(mix: Mix, key: &[u8], value: &[u8]) -> bool {
    number_of(mix, key).is_some_and(|number| is_value(mix, number, value))
}

/// The record that `key` belongs to.
pub fn number_of(mix: Mix, key: &[u8]) -> Option<u64> {
    digits_of(mix, key).map(crate::keys::unhash)
}

/// The digits of `key`.
pub fn digits_of(mix: Mix, key: &[u8]) -> Option<u64> {
    let digits = key
        .strip_prefix(b"user")
        .filter(|_| key.len() == mix.key_bytes())?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn check(number: u64, version: u32) -> u32 {
    hash(hash(number) ^ u64::from(version)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIXES: [Mix; 7] = [Mix::K, Mix::S, Mix::M, Mix::L, Mix::Sd, Mix::Md, Mix::Ld];

    #[test]
    fn a_value_is_that_of_its_record_only() {
        for mix in MIXES {
            let (mut name, mut bytes) = (Vec::new(), Vec::new());
            for number in [0, 1, 77, 123_456] {
                key(mix, number, &mut name);
                value(mix, number, 9, &mut bytes);
                assert_eq!(name.len(), mix.key_bytes());
                assert!(
                    is_value(mix, number, &bytes) && fits(mix, &name, &bytes),
                    "{mix:?}"
                );
                assert!(!is_value(mix, number + 1, &bytes), "{mix:?}");
            }
        }
    }

    #[test]
    fn damaged_values_are_noticed() {
        for mix in MIXES {
            let mut whole = Vec::new();
            value(mix, 5, 1, &mut whole);
            for at in [0, 4, whole.len() - 1] {
                let mut damaged = whole.clone();
                damaged[at] ^= 1;
                assert!(!is_value(mix, 5, &damaged), "{mix:?} {at}");
            }
            assert!(!is_value(mix, 5, &whole[..whole.len() - 1]));
            assert!(!is_value(mix, 5, b""));
        }
    }
}
