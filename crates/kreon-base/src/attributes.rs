//! What is kept beside a value.

use std::fmt;
use std::num::NonZeroU64;

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

/// What is kept beside a value. Most values have none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// From this moment on the key has no value; none: it has until the next write.
    pub expires: Option<Timestamp>,
}

impl Attributes {
    /// Of a value without any.
    pub const NONE: Self = Self { expires: None };

    /// Bytes that they take in front of a value, if there are any.
    pub const BYTES: usize = 8;

    /// Of a value that ends at `expires`.
    pub const fn expiring(expires: Option<Timestamp>) -> Self {
        Self { expires }
    }

    /// Whether there are none.
    #[inline]
    pub const fn is_none(self) -> bool {
        self.expires.is_none()
    }

    /// Bytes that they take in front of the value: none if there are none.
    #[inline]
    pub const fn stored_bytes(self) -> usize {
        if self.is_none() { 0 } else { Self::BYTES }
    }

    /// Whether the value has ended by `now`.
    #[inline]
    pub fn has_expired(self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
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
    fn attributes_cost_an_index_entry_one_word() {
        assert_eq!(size_of::<Attributes>(), 8);
    }
}
