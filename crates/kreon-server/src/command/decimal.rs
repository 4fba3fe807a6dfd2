//! Sums of decimal numbers, as `INCRBYFLOAT` makes them.
//!
//! Redis adds in `long double` and prints 17 digits behind the point, which hides that 0.1 is no binary fraction. Here numbers are
//! added as decimals, exactly, as long as they have at most 17 digits behind the point and 20 before it; others as `f64`.

use super::args::parse_float;
use crate::reply::CommandError;

/// Digits behind the point.
const SCALE: u32 = 17;
const UNIT: i128 = 10_i128.pow(SCALE);
/// Numbers with more than 20 digits before the point are no [`fixed`] ones.
const END: i128 = 10_i128.pow(20 + SCALE);

const INFINITE: CommandError = CommandError::new("ERR increment would produce NaN or Infinity");

/// The sum as text: no exponent, no zeros at the end. Both were parsed as floats before.
///
/// # Errors
/// It is infinite.
pub(super) fn sum(a: &[u8], b: &[u8]) -> Result<String, CommandError> {
    if let (Some(a), Some(b)) = (fixed(a), fixed(b)) {
        return Ok(text(a + b));
    }
    let sum = parse_float(a).unwrap_or(0.0) + parse_float(b).unwrap_or(0.0);
    match sum.is_finite() {
        true => Ok(format!("{sum}")),
        false => Err(INFINITE),
    }
}

/// The number in units of 10^-17; `None` if it is too large or too fine.
fn fixed(text: &[u8]) -> Option<i128> {
    let (is_negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let mut parts = text.splitn(2, |byte| matches!(byte, b'e' | b'E'));
    let digits = parts.next()?;
    let exponent: i32 = match parts.next() {
        Some(exponent) => str::from_utf8(exponent).ok()?.parse().ok()?,
        None => 0,
    };
    let point = digits.iter().position(|&byte| byte == b'.');
    let (whole, fraction) = match point {
        Some(point) => (digits.get(..point)?, digits.get(point + 1..)?),
        None => (digits, &[][..]),
    };
    let mut number = 0_i128;
    for byte in whole.iter().chain(fraction) {
        let digit = byte.checked_sub(b'0').filter(|&digit| digit < 10)?;
        number = number.checked_mul(10)?.checked_add(i128::from(digit))?;
    }
    let zeros = i64::from(SCALE) + i64::from(exponent) - i64::try_from(fraction.len()).ok()?;
    let power = 10_i128.checked_pow(u32::try_from(zeros.unsigned_abs()).ok()?)?;
    let number = match zeros {
        0.. => number.checked_mul(power)?,
        _ => (number % power == 0).then_some(number / power)?,
    };
    (number < END).then_some(if is_negative { -number } else { number })
}

fn text(number: i128) -> String {
    let sign = if number < 0 { "-" } else { "" };
    let number = number.unsigned_abs();
    let unit = UNIT.unsigned_abs();
    let (whole, fraction) = (number / unit, number % unit);
    let text = format!("{sign}{whole}.{fraction:017}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_added_exactly() {
        let cases = [
            ("0.1", "0.2", "0.3"),
            ("10.5", "0.1", "10.6"),
            ("3", "-3", "0"),
            ("5.0e3", "200", "5200"),
            ("-1.5", "1", "-0.5"),
            ("1", "1.1", "2.1"),
            ("99999999999999999999", "1", "100000000000000000000"),
            (".5", "5.", "5.5"),
            ("100", "0", "100"),
            ("9223372036854775807", "1e3", "9223372036854776807"),
            ("1E+2", "-25e-4", "99.9975"),
            (
                "9007199254740993",
                "1.000000000000000000000",
                "9007199254740994",
            ),
            ("0.1e-16", "1", "1.00000000000000001"),
            ("1e-18", "1", "1"),
        ];
        for (a, b, expected) in cases {
            assert_eq!(
                sum(a.as_bytes(), b.as_bytes()).unwrap(),
                expected,
                "{a} + {b}"
            );
        }
        assert!(sum(b"inf", b"1").is_err());
        assert!(sum(b"1e308", b"1e308").is_err());
    }
}
