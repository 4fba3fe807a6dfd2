//! Moments at which keys end, as commands give them.

use super::args::{NOT_INTEGER, is, parse_integer};
use crate::keyspace::{Access, Failure};
use crate::reply::CommandError;

/// How a command counts time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    /// 1,000 or 1.
    factor_ms: i64,
    /// Since 1970, not from now on.
    is_absolute: bool,
}

impl Unit {
    pub(super) const SECONDS: Self = Self {
        factor_ms: 1000,
        is_absolute: false,
    };
    pub(super) const MILLISECONDS: Self = Self {
        factor_ms: 1,
        is_absolute: false,
    };
    pub(super) const SECONDS_AT: Self = Self {
        factor_ms: 1000,
        is_absolute: true,
    };
    pub(super) const MILLISECONDS_AT: Self = Self {
        factor_ms: 1,
        is_absolute: true,
    };

    /// Of the option `EX`, `PX`, `EXAT` or `PXAT`.
    pub(super) fn of(option: &[u8]) -> Option<Self> {
        let options = [
            ("EX", Self::SECONDS),
            ("PX", Self::MILLISECONDS),
            ("EXAT", Self::SECONDS_AT),
            ("PXAT", Self::MILLISECONDS_AT),
        ];
        let found = options.into_iter().find(|(name, _)| is(option, name));
        found.map(|(_, unit)| unit)
    }

    /// The moment in milliseconds since 1970; `None` if it cannot be represented. It may lie in the past.
    pub(super) fn moment_ms(self, now_ms: u64, number: i64) -> Option<i64> {
        let ms = number.checked_mul(self.factor_ms)?;
        match self.is_absolute {
            true => Some(ms),
            false => ms.checked_add(i64::try_from(now_ms).ok()?),
        }
    }
}

/// When a string that is set ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deadline {
    Never,
    /// With the one before.
    Same,
    /// In milliseconds since 1970.
    At(u64),
}

impl Deadline {
    /// `number` of `unit`, as the command `name` got it.
    ///
    /// # Errors
    /// It is no number, not above zero, or too large.
    pub(super) fn parse(
        access: &mut Access<'_>,
        unit: Unit,
        number: &[u8],
        name: &str,
    ) -> Result<Self, Failure> {
        let number = parse_integer(number).ok_or(NOT_INTEGER)?;
        let moment = unit
            .moment_ms(access.now_ms(), number)
            .filter(|_| number > 0);
        let ms = moment.and_then(|ms| u64::try_from(ms).ok());
        Ok(Self::At(ms.ok_or_else(|| invalid(name))?))
    }
}

/// The error of a moment that the command `name` cannot use.
pub(super) fn invalid(name: &str) -> CommandError {
    CommandError::of(format!("ERR invalid expire time in '{name}' command"))
}
