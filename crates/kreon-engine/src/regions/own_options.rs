//! The options of a region, as its readers and writers see them.

use std::num::NonZeroU64;

use kreon_base::{Codec, RegionOptions, Timestamp};
use kreon_sync::{AtomicU64, Ordering};

/// The options of a region. Each is read by itself, without a lock: a write beside a change of several may see some of
/// them changed.
#[derive(Debug)]
pub struct OwnOptions {
    /// Codec, growth factor (0: none) and inline limit plus one (0: none), from the lowest byte on.
    packed: AtomicU64,
    ttl_ms: AtomicU64,
}

const GROWTH_SHIFT: u32 = 8;
const LIMIT_SHIFT: u32 = 16;

fn packed(options: &RegionOptions) -> u64 {
    let limit = options
        .inline_value_bytes_max
        .map_or(0, |limit| u64::from(limit) + 1);
    let growth = options.growth_factor.map_or(0, u64::from);
    u64::from(options.compression.code()) | (growth << GROWTH_SHIFT) | (limit << LIMIT_SHIFT)
}

impl OwnOptions {
    pub fn new(options: &RegionOptions) -> Self {
        Self {
            packed: AtomicU64::new(packed(options)),
            ttl_ms: AtomicU64::new(options.ttl_ms.map_or(0, NonZeroU64::get)),
        }
    }

    /// Changes all of them.
    pub fn set(&self, options: &RegionOptions) {
        self.packed.store(packed(options), Ordering::Relaxed);
        let ttl_ms = options.ttl_ms.map_or(0, NonZeroU64::get);
        self.ttl_ms.store(ttl_ms, Ordering::Relaxed);
    }

    /// All of them.
    pub fn all(&self) -> RegionOptions {
        let packed = self.packed.load(Ordering::Relaxed);
        RegionOptions {
            compression: codec_of(packed),
            ttl_ms: self.ttl_ms(),
            inline_value_bytes_max: limit_of(packed),
            growth_factor: growth_of(packed),
        }
    }

    /// How new values are packed.
    #[inline]
    pub fn compression(&self) -> Codec {
        codec_of(self.packed.load(Ordering::Relaxed))
    }

    /// When a value ends that is written `now`, if its write says nothing else; none: not by itself.
    pub fn expires(&self, now: impl FnOnce() -> Timestamp) -> Option<Timestamp> {
        let ttl_ms = self.ttl_ms()?;
        Some(now().plus_ms(ttl_ms.get()))
    }

    /// The default TTL.
    #[inline]
    pub fn ttl_ms(&self) -> Option<NonZeroU64> {
        NonZeroU64::new(self.ttl_ms.load(Ordering::Relaxed))
    }

    /// Most bytes of a value, as stored, that goes into leaves, where the store says `of_store`.
    #[inline]
    pub fn inline_value_bytes_max(&self, of_store: usize) -> usize {
        limit_of(self.packed.load(Ordering::Relaxed)).map_or(of_store, usize::from)
    }

    /// Size ratio of neighbouring levels; none: the store's.
    pub fn growth_factor(&self) -> Option<u8> {
        growth_of(self.packed.load(Ordering::Relaxed))
    }
}

fn codec_of(packed: u64) -> Codec {
    Codec::of_code(packed as u8).unwrap_or_default()
}

fn growth_of(packed: u64) -> Option<u8> {
    Some((packed >> GROWTH_SHIFT) as u8).filter(|growth| *growth != 0)
}

fn limit_of(packed: u64) -> Option<u16> {
    let limit = (packed >> LIMIT_SHIFT) as u32;
    limit.checked_sub(1).map(|limit| limit as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_back_as_they_were_set() {
        let all = RegionOptions {
            compression: Codec::Zstd,
            ttl_ms: NonZeroU64::new(5),
            inline_value_bytes_max: Some(0),
            growth_factor: Some(100),
        };
        let own = OwnOptions::new(&RegionOptions::DEFAULT);
        assert_eq!(own.all(), RegionOptions::DEFAULT);
        assert_eq!(own.inline_value_bytes_max(64), 64);
        own.set(&all);
        assert_eq!(own.all(), all);
        assert_eq!(own.inline_value_bytes_max(64), 0);
    }
}
