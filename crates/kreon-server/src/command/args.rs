//! Arguments of commands.

use std::time::Duration;

use bytes::Bytes;

use crate::keyspace::Failure;
use crate::reply::CommandError;

/// Longest wait, in seconds; longer ones are for ever.
const WAIT_SECONDS_MAX: f64 = 1e9;

pub(super) const SYNTAX: CommandError = CommandError::new("ERR syntax error");
pub(super) const NOT_INTEGER: CommandError =
    CommandError::new("ERR value is not an integer or out of range");
pub(super) const NOT_FLOAT: CommandError = CommandError::new("ERR value is not a valid float");
pub(super) const OVERFLOW: CommandError =
    CommandError::new("ERR increment or decrement would overflow");
const NOT_POSITIVE: CommandError = CommandError::new("ERR value is out of range, must be positive");

/// The argument at `index`, which the arity of the command promises.
///
/// # Errors
/// There is none.
pub(super) fn arg(args: &[Bytes], index: usize) -> Result<&Bytes, Failure> {
    args.get(index).ok_or_else(|| SYNTAX.into())
}

/// The arguments from `index` on.
pub(super) fn rest(args: &[Bytes], index: usize) -> &[Bytes] {
    args.get(index..).unwrap_or_default()
}

/// Arguments that come in pairs.
///
/// # Errors
/// That of `odd` if one has no partner.
pub(super) fn pairs(
    args: &[Bytes],
    odd: impl FnOnce() -> CommandError,
) -> Result<&[[Bytes; 2]], Failure> {
    match args.as_chunks() {
        (pairs, []) => Ok(pairs),
        _ => Err(odd().into()),
    }
}

/// A number as Redis writes it: no sign but `-`, no zeros in front, no spaces.
pub(super) fn parse_integer(text: &[u8]) -> Option<i64> {
    let is_canonical = matches!(text, [b'0'] | [b'1'..=b'9', ..] | [b'-', b'1'..=b'9', ..]);
    let text = is_canonical.then_some(text)?;
    str::from_utf8(text).ok()?.parse().ok()
}

/// # Errors
/// [`NOT_INTEGER`].
pub(super) fn integer(args: &[Bytes], index: usize) -> Result<i64, Failure> {
    parse_integer(arg(args, index)?).ok_or_else(|| NOT_INTEGER.into())
}

/// # Errors
/// A number below zero, or none.
pub(super) fn count(args: &[Bytes], index: usize) -> Result<usize, Failure> {
    let number = parse_integer(arg(args, index)?);
    let number = number.and_then(|number| usize::try_from(number).ok());
    number.ok_or_else(|| NOT_POSITIVE.into())
}

/// A number with a fraction or an exponent, or infinity; never NaN.
pub(super) fn parse_float(text: &[u8]) -> Option<f64> {
    let number: f64 = str::from_utf8(text).ok()?.parse().ok()?;
    // Without a letter what is infinite was too large.
    let is_range = number.is_infinite() && text.iter().any(u8::is_ascii_digit);
    (!number.is_nan() && !is_range).then_some(number)
}

/// # Errors
/// [`NOT_FLOAT`].
pub(super) fn float(args: &[Bytes], index: usize) -> Result<f64, Failure> {
    parse_float(arg(args, index)?).ok_or_else(|| NOT_FLOAT.into())
}

/// Whether an argument is the option `name`, given in upper case.
pub(super) fn is(argument: &[u8], name: &str) -> bool {
    argument.eq_ignore_ascii_case(name.as_bytes())
}

/// The elements of a list of `len` from index `start` to `stop`, both inclusive and from the end if negative, as Redis counts
/// them: first index and number.
pub(super) fn window(start: i64, stop: i64, len: u64) -> (u64, u64) {
    let len_signed = i64::try_from(len).unwrap_or(i64::MAX);
    let from_end = |index: i64| {
        if index < 0 {
            len_signed.saturating_add(index)
        } else {
            index
        }
    };
    let (start, stop) = (from_end(start).max(0), from_end(stop).min(len_signed - 1));
    match stop >= start {
        true => (start.unsigned_abs(), (stop - start).unsigned_abs() + 1),
        false => (0, 0),
    }
}

/// How long to wait at most: the last argument, in seconds. `None`: for ever.
///
/// # Errors
/// It is no number, or below zero.
pub(super) fn wait_time(args: &[Bytes]) -> Result<Option<Duration>, CommandError> {
    let not_float = CommandError::new("ERR timeout is not a float or out of range");
    let seconds = args.last().and_then(|argument| parse_float(argument));
    match seconds {
        None => Err(not_float),
        Some(seconds) if seconds.is_infinite() => Err(not_float),
        Some(..0.0) => Err(CommandError::new("ERR timeout is negative")),
        Some(0.0) => Ok(None),
        Some(seconds) if seconds > WAIT_SECONDS_MAX => Ok(None),
        // Never nothing at all: that would be for ever.
        Some(seconds) => Ok(Some(Duration::from_secs_f64(seconds))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_one_spelling() {
        for (text, number) in [
            ("0", 0),
            ("-1", -1),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
        ] {
            assert_eq!(parse_integer(text.as_bytes()), Some(number));
        }
        for text in [
            "",
            "-",
            "+1",
            "01",
            "-0",
            " 1",
            "1 ",
            "1.0",
            "9223372036854775808",
            "a",
        ] {
            assert_eq!(parse_integer(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn floats_are_numbers_or_infinities() {
        for (text, number) in [
            ("1.5", 1.5),
            ("-3e2", -300.0),
            ("inf", f64::INFINITY),
            ("-inf", f64::NEG_INFINITY),
            ("+5", 5.0),
        ] {
            assert_eq!(parse_float(text.as_bytes()), Some(number));
        }
        for text in ["", "nan", "1 ", " 1", "1e400", "abc", "1,5"] {
            assert_eq!(parse_float(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn windows_are_clipped_to_the_list() {
        let cases = [
            ((0, -1), (0, 5)),
            ((1, 2), (1, 2)),
            ((-2, -1), (3, 2)),
            ((-100, 100), (0, 5)),
            ((3, 1), (0, 0)),
            ((5, 9), (0, 0)),
            ((0, -6), (0, 0)),
            ((i64::MIN, i64::MAX), (0, 5)),
        ];
        for ((start, stop), expected) in cases {
            assert_eq!(window(start, stop, 5), expected, "{start} {stop}");
        }
        assert_eq!(window(0, -1, 0), (0, 0));
    }
}
