//! Packed values: one LZ4 block or Zstandard frame behind the length of the value.
//!
//! A value is packed when it is written, before its record is made, and unpacked when it is shown: log, levels, spills,
//! collection and replication see its packed bytes. It stays as it is where packing saves less than an eighth, so that
//! a read never pays for nothing.

use kreon_base::{Attributes, Codec, Error, Result, VALUE_BYTES_MAX, planted};
use kreon_log::TakeValue;

mod codecs;

/// Shorter values are not tried: what could be saved is less than what attributes and length take.
const VALUE_BYTES_MIN: usize = 32;

/// # Errors
/// `InvalidArgument` if this build lacks the codec.
pub fn check(codec: Codec) -> Result<()> {
    match codecs::has(codec) {
        true => Ok(()),
        false => Err(Error::invalid(format!(
            "this build cannot pack or unpack values by {0}: it is built without the feature `{0}`",
            codec.name()
        ))),
    }
}

/// Appends `value`, packed, to `out`; `false`: it saves too little, and `out` is as it was. It saves enough where
/// attributes, length and packed bytes together are at most seven eighths of the value.
pub fn pack(codec: Codec, value: &[u8], out: &mut Vec<u8>) -> bool {
    let start = out.len();
    let is_packed = value.len() >= VALUE_BYTES_MIN && {
        out.extend((value.len() as u32).to_le_bytes());
        codecs::pack(codec, value, out)
    };
    let stored_bytes = Attributes::BYTES + (out.len() - start);
    if is_packed && stored_bytes <= value.len() - value.len() / 8 {
        return true;
    }
    out.truncate(start);
    false
}

/// Puts the value of which `stored` are the packed bytes into `out`, in place of what is there.
///
/// # Errors
/// `Corruption` if they are not what [`pack`] has made; `out` holds anything then. `InvalidArgument` if this build lacks the
/// codec.
pub fn unpack(codec: Codec, stored: &[u8], out: &mut Vec<u8>) -> Result<()> {
    out.clear();
    let wrong = || {
        let name = codec.name();
        Error::corruption(format!("a value cannot be unpacked by {name}"))
    };
    check(codec)?;
    if codec == Codec::None {
        out.extend_from_slice(stored);
        return Ok(());
    }
    let (length, packed) = stored.split_first_chunk().ok_or_else(wrong)?;
    let length = u32::from_le_bytes(*length) as usize;
    if length > VALUE_BYTES_MAX || !codecs::unpack(codec, packed, length, out) {
        return Err(wrong());
    }
    Ok(())
}

/// Hands the value of which `stored` are the bytes to `take`.
///
/// # Errors
/// `Corruption` if they cannot be unpacked.
#[inline]
pub fn show<T: TakeValue>(codec: Codec, stored: &[u8], take: T) -> Result<T::Taken> {
    planted!(PackedValueShown => return Ok(take.take(stored)));
    match codec {
        Codec::None => Ok(take.take(stored)),
        codec => take.assemble(|value| unpack(codec, stored, value)),
    }
}

/// Takes packed bytes, unpacks them and hands the value on.
pub struct Unpack<T> {
    /// How they are packed.
    pub codec: Codec,
    /// Takes the value.
    pub take: T,
}

impl<T: TakeValue> TakeValue for Unpack<T> {
    type Taken = Result<T::Taken>;

    fn take(self, stored: &[u8]) -> Self::Taken {
        show(self.codec, stored, self.take)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that LZ4 makes about half of.
    fn text(bytes: usize) -> Vec<u8> {
        let words = [&b"the quick "[..], b"brown fox ", b"jumps ", b"over it. "];
        let mut state = 7u32;
        let mut text = Vec::new();
        while text.len() < bytes {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            text.extend_from_slice(words[(state >> 30) as usize]);
        }
        text.truncate(bytes);
        text
    }

    fn noise(bytes: usize) -> Vec<u8> {
        let mut state = 1u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 24) as u8
        };
        (0..bytes).map(|_| next()).collect()
    }

    const PACKING: &[Codec] = match cfg!(feature = "zstd") {
        true => &[Codec::Lz4, Codec::Zstd],
        false => &[Codec::Lz4],
    };

    #[test]
    fn what_is_packed_comes_back() {
        for &codec in PACKING {
            for bytes in [100, 1000, 70_000, 3 << 20] {
                let (value, mut out) = (text(bytes), b"before".to_vec());
                assert!(pack(codec, &value, &mut out), "{codec:?} {bytes}");
                let stored = &out[6..];
                assert!(stored.len() + 8 <= bytes * 7 / 8);
                let mut back = b"something".to_vec();
                unpack(codec, stored, &mut back).unwrap();
                assert!(back == value, "{codec:?} {bytes}");
            }
        }
    }

    #[test]
    fn a_value_stays_as_it_is_where_packing_saves_less_than_an_eighth() {
        for &codec in PACKING {
            let mut out = b"before".to_vec();
            for value in [noise(4096), noise(31), vec![0; 31], Vec::new()] {
                assert!(!pack(codec, &value, &mut out));
                assert_eq!(out, b"before");
            }
            // All but a little can be packed: not enough.
            let mut mixed = noise(1000);
            mixed.extend(vec![0; 120]);
            assert!(!pack(codec, &mixed, &mut out));
        }
    }

    #[test]
    fn damaged_bytes_give_an_error_and_take_no_more_memory_than_they_say() {
        let value = text(2000);
        for &codec in PACKING {
            let mut stored = Vec::new();
            assert!(pack(codec, &value, &mut stored));
            let mut out = Vec::new();
            for cut in 0..stored.len() {
                assert!(unpack(codec, &stored[..cut], &mut out).is_err(), "{cut}");
            }
            for length in [0u32, 1, 1999, 2001, 1 << 20, u32::MAX] {
                stored[..4].copy_from_slice(&length.to_le_bytes());
                assert!(unpack(codec, &stored, &mut out).is_err(), "{length}");
            }
        }
    }
}
