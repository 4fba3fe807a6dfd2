//! Placement: whether a value goes into the index or stays in the log alone.

use kreon_base::{Attributes, LogOffset, Payload};
use kreon_format::LONG_KEY_STORED_BYTES;

/// What the index holds for a record at `offset`. `value_bytes` are those behind the key in the record, attributes
/// included, and `None` for a deletion; `value` may be left out if it is longer than `inline_value_bytes_max`.
///
/// Short values go into the index, unless the key is so long that its rest has to be read from the
/// record anyway.
pub fn place<'a>(
    key: &[u8],
    value_bytes: Option<u32>,
    (value, attributes): (Option<&'a [u8]>, Attributes),
    offset: LogOffset,
    inline_value_bytes_max: usize,
) -> Payload<'a> {
    match (value_bytes, value) {
        (None, _) => Payload::Tombstone { offset },
        (Some(_), Some(value))
            if value.len() <= inline_value_bytes_max && key.len() <= LONG_KEY_STORED_BYTES =>
        {
            Payload::Inline { value, attributes }
        }
        (Some(value_bytes), _) => Payload::Logged {
            offset,
            value_bytes,
            attributes,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_values_of_long_keys_stay_in_the_log() {
        let place = |key: &[u8], value: &'static [u8]| {
            let whole = (Some(value), Attributes::NONE);
            place(key, Some(value.len() as u32), whole, LogOffset(8), 4)
        };
        let inline = Payload::Inline {
            value: b"1234",
            attributes: Attributes::NONE,
        };
        assert_eq!(place(b"k", b"1234"), inline);
        let logged = |value_bytes| Payload::Logged {
            offset: LogOffset(8),
            value_bytes,
            attributes: Attributes::NONE,
        };
        assert_eq!(place(b"k", b"12345"), logged(5));
        assert_eq!(place(&[0; 1025], b"1"), logged(1));
    }
}
