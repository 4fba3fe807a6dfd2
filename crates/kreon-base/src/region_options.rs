//! What a region has of its own.

use std::num::NonZeroU64;

use crate::Codec;

/// What a region has of its own, where others go by the options of the store. Durable: the catalogue has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegionOptions {
    /// How values are packed from now on.
    pub compression: Codec,
    /// How long a value lives whose write says nothing else, in milliseconds, at most 48 bits of them; `None`: until the
    /// next write of its key.
    pub ttl_ms: Option<NonZeroU64>,
    /// Most bytes of a value, as stored, that goes into leaves; `None`: as the store says.
    pub inline_value_bytes_max: Option<u16>,
    /// Size ratio of neighbouring levels; `None`: as the store says.
    pub growth_factor: Option<u8>,
}

impl RegionOptions {
    /// Of a region that goes by the options of the store.
    pub const DEFAULT: Self = Self {
        compression: Codec::None,
        ttl_ms: None,
        inline_value_bytes_max: None,
        growth_factor: None,
    };

    /// Whether the region goes by the options of the store.
    pub fn is_default(&self) -> bool {
        *self == Self::DEFAULT
    }
}
