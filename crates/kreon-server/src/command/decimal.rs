//! Sums of decimal numbers, as `INCRBYFLOAT` makes them.
//!
//! Redis adds in `long double` and prints 17 digits behind the point, which hides that 0.1 is no binary fraction. Here numbers are
//! added as decimals, exactly, as long as they have at most 17 digits behind the point and 20 before it; others as `f64`.

use super::args::parse_float;
use crate::reply::CommandError;

/// Digits behind the point.
const SCALE: u32 = 17;
const UNIT: i128 = 10_i128.pow(SCALE);
/// Digits before the point.
const WHOLE_DIGITS_MAX: usize = 20;

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

/// The number in units of 10^-17; `None` if it is too large, too fine, or has an exponent.
fn fixed(text: &[u8]) -> Option<i128> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let point = digits.iter().position(|&byte| byte == b'.');
    let (whole, fraction) = match point {
        Some(point) => (digits.get(..point)?, digits.get(point + 1..)?),
        None => (digits, &[][..]),
    };
    if whole.len() > WHOLE_DIGITS_MAX || fraction.len() > SCALE as usize {
        return None;
    }
    let zeros = std::iter::repeat_n(&b'0', SCALE as usize - fraction.len());
    let mut number = 0_i128;
    for byte in whole.iter().chain(fraction).chain(zeros) {
        let digit = byte.checked_sub(b'0').filter(|&digit| digit < 10)?;
        number = number * 10 + i128::from(digit);
    }
    Some(if is_negative { -number } else { number })
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
