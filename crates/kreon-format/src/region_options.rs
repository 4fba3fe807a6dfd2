//! What a region has of its own: 10 bytes in the catalogue and in the record that makes the region, since format 6.
//!
//! Codec (1 byte) | growth factor (1, 0: the store's) | inline limit (2, all bits one: the store's) | TTL in milliseconds
//! (6, 0: none). A region that goes by the options of the store has no such bytes, so there is one encoding.

use std::num::NonZeroU64;

use kreon_base::{Codec, RegionOptions};

use crate::INLINE_VALUE_BYTES_MAX;
use crate::bytes::{u48, u48_bytes};

/// The bytes of options.
pub const REGION_OPTIONS_BYTES: usize = 10;

/// An inline limit that is the store's.
const LIMIT_OF_STORE: u16 = u16::MAX;

/// The bytes of options; there must be some.
pub fn encode_region_options(options: &RegionOptions) -> [u8; REGION_OPTIONS_BYTES] {
    debug_assert!(
        !options.is_default(),
        "a region without options has no bytes of them"
    );
    let limit = options.inline_value_bytes_max.unwrap_or(LIMIT_OF_STORE);
    let [l0, l1] = limit.to_le_bytes();
    let [a, b, c, d, e, f] = u48_bytes(options.ttl_ms.map_or(0, NonZeroU64::get));
    let growth = options.growth_factor.unwrap_or(0);
    [options.compression.code(), growth, l0, l1, a, b, c, d, e, f]
}

/// The options in these bytes; `None` if this build does not know them, or there are none.
pub fn decode_region_options(bytes: [u8; REGION_OPTIONS_BYTES]) -> Option<RegionOptions> {
    let [codec, growth, l0, l1, ttl @ ..] = bytes;
    let limit = Some(u16::from_le_bytes([l0, l1])).filter(|limit| *limit != LIMIT_OF_STORE);
    let options = RegionOptions {
        compression: Codec::of_code(codec)?,
        ttl_ms: NonZeroU64::new(u48(ttl)),
        inline_value_bytes_max: limit,
        growth_factor: Some(growth).filter(|growth| *growth != 0),
    };
    let is_valid = limit.is_none_or(|limit| usize::from(limit) <= INLINE_VALUE_BYTES_MAX)
        && options.growth_factor != Some(1)
        && !options.is_default();
    is_valid.then_some(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_one_encoding() {
        let all = RegionOptions {
            compression: Codec::Zstd,
            ttl_ms: NonZeroU64::new((1 << 48) - 1),
            inline_value_bytes_max: Some(0x0100),
            growth_factor: Some(9),
        };
        let bytes = [2, 9, 0, 1, 255, 255, 255, 255, 255, 255];
        assert_eq!(encode_region_options(&all), bytes);
        let one = |change: fn(&mut RegionOptions)| {
            let mut options = RegionOptions::DEFAULT;
            change(&mut options);
            options
        };
        for options in [
            all,
            one(|options| options.compression = Codec::Lz4),
            one(|options| options.ttl_ms = NonZeroU64::new(1)),
            one(|options| options.inline_value_bytes_max = Some(0)),
            one(|options| options.growth_factor = Some(2)),
        ] {
            let bytes = encode_region_options(&options);
            assert_eq!(decode_region_options(bytes), Some(options));
        }
        for invalid in [
            [0, 0, 255, 255, 0, 0, 0, 0, 0, 0],
            [3, 0, 255, 255, 0, 0, 0, 0, 0, 0],
            [1, 1, 255, 255, 0, 0, 0, 0, 0, 0],
            [1, 0, 1, 1, 0, 0, 0, 0, 0, 0],
        ] {
            assert_eq!(decode_region_options(invalid), None);
        }
    }
}
