//! Times to live as people write them: `250ms`, `10s`, `1.5h`, `7d`. Moments as files have them: milliseconds since 1970.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Units, and the milliseconds in each.
const UNITS: [(&str, f64); 5] = [
    ("ms", 1.0),
    ("s", 1000.0),
    ("m", 60_000.0),
    ("h", 3_600_000.0),
    ("d", 86_400_000.0),
];

/// A time to live: a number above 0 and its unit.
pub fn parse_lifetime(text: &str) -> Result<Duration, String> {
    let told =
        |reason: &str| format!("`{text}` is not a time such as 250ms, 10s, 1.5h or 7d: {reason}");
    let trimmed = text.trim();
    let end = trimmed.find(|c: char| c.is_ascii_alphabetic());
    let (number, unit) = trimmed.split_at(end.ok_or_else(|| told("it has no unit"))?);
    let found = UNITS.iter().find(|(name, _)| *name == unit.trim());
    let (_, unit_ms) = found.ok_or_else(|| told("the unit is none of ms, s, m, h, d"))?;
    let number: f64 = number
        .trim()
        .parse()
        .map_err(|_| told("it has no number"))?;
    let ms = number * unit_ms;
    if !(ms > 0.0 && ms.is_finite()) {
        return Err(told("it is not above 0"));
    }
    // A float beyond the range becomes the nearest integer; whoever lives so long lives as long as can be.
    Ok(Duration::from_millis(ms.ceil() as u64))
}

/// What [`parse_lifetime`] reads as the same, to the millisecond.
pub fn lifetime_text(left: Duration) -> String {
    let (seconds, ms) = (left.as_secs(), left.subsec_millis());
    match ms {
        0 => format!("{seconds}s"),
        _ => format!("{seconds}.{ms:03}s"),
    }
}

/// The moment so many milliseconds after 1970.
pub fn moment_of_ms(ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(ms)
}

/// Milliseconds from 1970 to `moment`.
pub fn ms_of_moment(moment: SystemTime) -> u64 {
    let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_is_a_number_with_a_unit() {
        for (text, ms) in [
            ("250ms", 250),
            ("10s", 10_000),
            (" 1.5 h ", 5_400_000),
            ("2m", 120_000),
            ("7d", 604_800_000),
            ("0.1ms", 1),
        ] {
            let found = parse_lifetime(text);
            assert_eq!(found, Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "10", "s", "-1s", "0s", "10 years", "1e999s", "nans"] {
            let told = parse_lifetime(text).unwrap_err();
            assert!(told.contains("10s"), "{told}");
        }
    }

    #[test]
    fn what_is_left_reads_as_it_is_written() {
        for ms in [1, 999, 1000, 61_007, 1 << 40] {
            let left = Duration::from_millis(ms);
            assert_eq!(parse_lifetime(&lifetime_text(left)), Ok(left));
        }
        assert_eq!(lifetime_text(Duration::from_millis(9050)), "9.050s");
    }
}
