//! What is kept beside a value.

use std::fmt;
use std::num::NonZeroU64;

use crate::Codec;

/// A moment of the wall clock: milliseconds since 1970, 1 to [`MAX`](Self::MAX).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(NonZeroU64);

impl Timestamp {
    /// The first one.
    pub const MIN: Self = Self(NonZeroU64::MIN);

    /// The last one, in the year 10889: it has 48 bits.
    pub const MAX: Self = Self::of_ms((1 << 48) - 1);

    /// The moment so many milliseconds after 1970; the nearest one for a number out of range.
    pub const fn of_ms(ms: u64) -> Self {
        let last = (1 << 48) - 1;
        match NonZeroU64::new(if ms > last { last } else { ms }) {
            Some(ms) => Self(ms),
            None => Self::MIN,
        }
    }

    /// Milliseconds since 1970.
    pub const fn ms(self) -> u64 {
        self.0.get()
    }

    /// The moment so many milliseconds later, [`MAX`](Self::MAX) at the most.
    pub const fn plus_ms(self, ms: u64) -> Self {
        Self::of_ms(self.ms().saturating_add(ms))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.ms())
    }
}

/// What is kept beside a value: its expiry and its codec. Most values have none.
///
/// One word, as in the log and in leaves: the expiry in the lower 48 bits, 0 for none, above it the byte of the codec.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Attributes(u64);

impl Attributes {
    /// Of a value without any.
    pub const NONE: Self = Self(0);

    /// Bytes that they take in front of a value, if there are any.
    pub const BYTES: usize = 8;

    const EXPIRY: u64 = (1 << 48) - 1;
    const CODEC_SHIFT: u32 = 48;

    /// Of a value that ends at `expires`.
    pub const fn expiring(expires: Option<Timestamp>) -> Self {
        match expires {
            Some(expires) => Self(expires.ms()),
            None => Self::NONE,
        }
    }

    /// The same with another codec.
    #[must_use]
    pub const fn with_codec(self, codec: Codec) -> Self {
        Self((self.0 & Self::EXPIRY) | ((codec.code() as u64) << Self::CODEC_SHIFT))
    }

    /// From this moment on the key has no value; none: it has until the next write.
    #[inline]
    pub const fn expires(self) -> Option<Timestamp> {
        match self.0 & Self::EXPIRY {
            0 => None,
            ms => Some(Timestamp::of_ms(ms)),
        }
    }

    /// How the bytes of the value are packed.
    #[inline]
    pub const fn codec(self) -> Codec {
        // No other code is ever put in.
        match Codec::of_code((self.0 >> Self::CODEC_SHIFT) as u8) {
            Some(codec) => codec,
            None => Codec::None,
        }
    }

    /// The word.
    #[inline]
    pub const fn word(self) -> u64 {
        self.0
    }

    /// The attributes of a word; `None` if no value has these: there are none, or this build does not know them.
    #[inline]
    pub const fn of_word(word: u64) -> Option<Self> {
        let code = word >> Self::CODEC_SHIFT;
        let is_known = code <= u8::MAX as u64 && Codec::of_code(code as u8).is_some();
        if is_known && word != 0 {
            Some(Self(word))
        } else {
            None
        }
    }

    /// Whether there are none.
    #[inline]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Bytes that they take in front of the value: none if there are none.
    #[inline]
    pub const fn stored_bytes(self) -> usize {
        if self.is_none() { 0 } else { Self::BYTES }
    }

    /// Whether the value has ended by `now`.
    #[inline]
    pub fn has_expired(self, now: Timestamp) -> bool {
        self.expires().is_some_and(|expires| expires <= now)
    }
}

impl fmt::Debug for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Attributes");
        shown.field("expires", &self.expires());
        shown.field("codec", &self.codec()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_stays_in_its_range() {
        assert_eq!(Timestamp::of_ms(0), Timestamp::MIN);
        assert_eq!(Timestamp::of_ms(u64::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::MAX.plus_ms(1), Timestamp::MAX);
        assert_eq!(Timestamp::of_ms(5).plus_ms(u64::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::of_ms(5).plus_ms(7).ms(), 12);
    }

    #[test]
    fn a_value_has_ended_at_its_expiry_and_not_before() {
        let attributes = Attributes::expiring(Some(Timestamp::of_ms(10)));
        assert!(!attributes.has_expired(Timestamp::of_ms(9)));
        assert!(attributes.has_expired(Timestamp::of_ms(10)));
        assert!(!Attributes::NONE.has_expired(Timestamp::MAX));
        assert_eq!(
            (attributes.stored_bytes(), Attributes::NONE.stored_bytes()),
            (8, 0)
        );
    }

    #[test]
    fn a_word_has_expiry_and_codec_and_nothing_else() {
        let expiring = Attributes::expiring(Some(Timestamp::MAX));
        for attributes in [
            expiring,
            expiring.with_codec(Codec::Zstd),
            Attributes::NONE.with_codec(Codec::Lz4),
        ] {
            assert_eq!(Attributes::of_word(attributes.word()), Some(attributes));
        }
        assert_eq!(
            expiring.with_codec(Codec::Lz4).expires(),
            Some(Timestamp::MAX)
        );
        assert_eq!(expiring.with_codec(Codec::Lz4).codec(), Codec::Lz4);
        assert!(expiring.with_codec(Codec::Lz4).with_codec(Codec::None) == expiring);
        for unknown in [0, 3 << 48, 1 << 56, 1 << 63] {
            assert_eq!(Attributes::of_word(unknown), None);
        }
    }

    #[test]
    fn attributes_cost_an_index_entry_one_word() {
        assert_eq!(size_of::<Attributes>(), 8);
    }
}
