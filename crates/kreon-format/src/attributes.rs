//! What is kept beside a value: 8 bytes in front of it in the log and in leaves, since format 5.
//!
//! Expiry in milliseconds since 1970 (6 bytes, 0: none) | codec of the value (1 byte, 0: none; others since format 6) |
//! reserved (1 byte, 0). A value without attributes has no such bytes, so there is one encoding of everything.

use kreon_base::Attributes;

/// The bytes of attributes; there must be some.
pub fn encode_attributes(attributes: Attributes) -> [u8; Attributes::BYTES] {
    debug_assert!(
        !attributes.is_none(),
        "a value without attributes has no bytes of them"
    );
    attributes.word().to_le_bytes()
}

/// The attributes in these bytes; `None` if this build does not know them, or there are none.
#[inline]
pub fn decode_attributes(bytes: [u8; Attributes::BYTES]) -> Option<Attributes> {
    Attributes::of_word(u64::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use kreon_base::{Codec, Timestamp};

    use super::*;

    #[test]
    fn attributes_have_one_encoding() {
        for ms in [1, 0x0102_0304_0506, Timestamp::MAX.ms()] {
            for codec in Codec::ALL {
                let attributes = Attributes::expiring(Some(Timestamp::of_ms(ms))).with_codec(codec);
                assert_eq!(
                    decode_attributes(encode_attributes(attributes)),
                    Some(attributes)
                );
            }
        }
        let packed = Attributes::NONE.with_codec(Codec::Zstd);
        assert_eq!(encode_attributes(packed), [0, 0, 0, 0, 0, 0, 2, 0]);
        assert_eq!(decode_attributes([0; 8]), None);
        assert_eq!(decode_attributes([1, 0, 0, 0, 0, 0, 3, 0]), None);
        assert_eq!(decode_attributes([1, 0, 0, 0, 0, 0, 0, 1]), None);
    }
}
