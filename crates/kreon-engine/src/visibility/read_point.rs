//! Where a read looks from: which writes it sees, and by what time values have expired for it.

use kreon_base::{Attributes, Lsn, Timestamp, planted};

use crate::options::Clock;

/// Where a read looks from.
#[derive(Clone, Copy)]
pub struct ReadPoint<'c> {
    /// It sees the writes before this.
    pub lsn: Lsn,
    time: Time<'c>,
}

/// When a read takes place. The time of a snapshot is fixed; the clock is not read where no value has an expiry.
#[derive(Clone, Copy)]
enum Time<'c> {
    Fixed(Timestamp),
    Now(&'c Clock),
}

impl<'c> ReadPoint<'c> {
    /// Sees everything, now.
    pub fn now(clock: &'c Clock) -> Self {
        Self {
            lsn: Lsn::MAX,
            time: Time::Now(clock),
        }
    }

    /// Sees the writes before `lsn`, at `time`.
    pub fn at(lsn: Lsn, time: Timestamp) -> Self {
        Self {
            lsn,
            time: Time::Fixed(time),
        }
    }

    /// The same at a time that does not go on.
    pub fn settled(self) -> ReadPoint<'static> {
        ReadPoint::at(self.lsn, self.time())
    }

    /// Its time.
    pub fn time(self) -> Timestamp {
        match self.time {
            Time::Fixed(time) => time,
            Time::Now(clock) => clock.now(),
        }
    }

    /// Whether a value has ended for it.
    #[inline]
    pub fn has_expired(self, attributes: Attributes) -> bool {
        !attributes.is_none() && self.is_behind(attributes)
    }

    #[cold]
    fn is_behind(self, attributes: Attributes) -> bool {
        planted!(ExpiredKeySeen => return false);
        attributes.has_expired(self.time())
    }
}
