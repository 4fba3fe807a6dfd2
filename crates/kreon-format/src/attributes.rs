//! What is kept beside a value: 8 bytes in front of it in the log and in leaves, since format 5.
//!
//! Expiry in milliseconds since 1970 (6 bytes, 0: none) | codec of the value (1 byte, 0: none) | reserved (1 byte, 0). A
//! value without attributes has no such bytes, so there is one encoding of everything.

use kreon_base::{Attributes, Timestamp};

use crate::bytes::{u48, u48_bytes};

/// The bytes of attributes; there must be some.
pub fn encode_attributes(attributes: Attributes) -> [u8; Attributes::BYTES] {
    debug_assert!(
        !attributes.is_none(),
        "a value without attributes has no bytes of them"
    );
    let [a, b, c, d, e, f] = u48_bytes(attributes.expires.map_or(0, Timestamp::ms));
    [a, b, c, d, e, f, 0, 0]
}

/// The attributes in these bytes; `None` if this build does not know them, or there are none.
#[inline]
pub fn decode_attributes(bytes: [u8; Attributes::BYTES]) -> Option<Attributes> {
    let [a, b, c, d, e, f, codec, reserved] = bytes;
    let expires = u48([a, b, c, d, e, f]);
    let is_known = expires != 0 && codec == 0 && reserved == 0;
    is_known.then(|| Attributes::expiring(Some(Timestamp::of_ms(expires))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_have_one_encoding() {
        for ms in [1, 0x0102_0304_0506, Timestamp::MAX.ms()] {
            let attributes = Attributes::expiring(Some(Timestamp::of_ms(ms)));
            assert_eq!(
                decode_attributes(encode_attributes(attributes)),
                Some(attributes)
            );
        }
        assert_eq!(decode_attributes([0; 8]), None);
        assert_eq!(decode_attributes([1, 0, 0, 0, 0, 0, 1, 0]), None);
        assert_eq!(decode_attributes([1, 0, 0, 0, 0, 0, 0, 1]), None);
    }
}
