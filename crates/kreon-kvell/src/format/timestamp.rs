//! Timestamps: the order of the writes of a partition.

use kreon_base::id;

/// Bits of the counter in a timestamp.
const COUNTER_BITS: u32 = 40;

/// Largest incarnation of a store: 24 bits, an opening a minute for 31 years.
pub const INCARNATION_MAX: u32 = (1 << 24) - 1;

/// Largest counter of an incarnation: 40 bits, a million writes a second for 12 days.
pub const COUNTER_MAX: u64 = (1 << COUNTER_BITS) - 1;

id!(
    /// Age of a write: the incarnation of the store (upper 24 bits) and a counter of the partition (lower 40). A partition
    /// never uses one twice, whatever a crash takes away: each opening has a new incarnation, which is durable before its
    /// first write. 0 is older than all writes.
    Timestamp(u64), "timestamp"
);

impl Timestamp {
    /// The timestamp with these parts, up to [`INCARNATION_MAX`] and [`COUNTER_MAX`]. Larger ones lose their upper bits.
    pub const fn new(incarnation: u32, counter: u64) -> Self {
        debug_assert!(incarnation <= INCARNATION_MAX && counter <= COUNTER_MAX);
        Self((incarnation as u64) << COUNTER_BITS | counter & COUNTER_MAX)
    }

    /// The incarnation that wrote.
    pub const fn incarnation(self) -> u32 {
        (self.0 >> COUNTER_BITS) as u32
    }

    /// The number of the write in its incarnation.
    pub const fn counter(self) -> u64 {
        self.0 & COUNTER_MAX
    }

    /// The next one of the same incarnation; `None` at the end of its counter. The store has to be opened again then.
    #[must_use]
    pub const fn next(self) -> Option<Self> {
        match self.counter() < COUNTER_MAX {
            true => Some(Self(self.0 + 1)),
            false => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_ends_without_reaching_the_next_incarnation() {
        let last = Timestamp::new(3, COUNTER_MAX);
        assert_eq!(last.next(), None);
        assert!(last < Timestamp::new(4, 0));
        assert_eq!(Timestamp::new(3, COUNTER_MAX - 1).next(), Some(last));
        assert_eq!((last.incarnation(), last.counter()), (3, COUNTER_MAX));
        assert_eq!(Timestamp::new(INCARNATION_MAX, COUNTER_MAX).0, u64::MAX);
    }
}
