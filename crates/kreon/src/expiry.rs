//! When a value ends.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kreon_base::{Attributes, Timestamp};

/// When a value ends: see [`Scan::peek_expiry`](crate::Scan::peek_expiry).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// With the next write of the key.
    Never,
    /// At this moment of the wall clock, a whole number of milliseconds after 1970, unless the key is written before.
    At(SystemTime),
}

impl Expiry {
    pub(crate) fn of(attributes: Attributes) -> Self {
        match attributes.expires() {
            None => Self::Never,
            Some(expires) => Self::At(UNIX_EPOCH + Duration::from_millis(expires.ms())),
        }
    }
}

/// The first millisecond that is not before `moment`; the nearest one for a moment out of range.
pub(crate) fn timestamp(moment: SystemTime) -> Timestamp {
    let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
    let ms = since.as_nanos().div_ceil(1_000_000);
    Timestamp::of_ms(u64::try_from(ms).unwrap_or(u64::MAX))
}
