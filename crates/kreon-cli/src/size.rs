//! Sizes as people write them: `65536`, `64k`, `256MiB`, `1.5g`.

/// Bytes of a size. A letter alone and `KiB`, `MiB`, ... count in powers of 1024 (as in `1g`), `kB`,
/// `MB`, ... in powers of 1000; upper and lower case are the same; a fraction is rounded down.
pub fn parse_size(text: &str) -> Result<usize, String> {
    let text = text.trim();
    let unit_at = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let wrong = || format!("`{text}` is not a size such as 65536, 64k, 256MiB or 1g");
    let scale = unit_bytes(unit.trim()).ok_or_else(wrong)?;
    let bytes = if number.contains('.') {
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let bytes = number * scale as f64;
        // 2^53: up to there every whole number of bytes is exact.
        (bytes < (1u64 << 53) as f64).then_some(bytes as u64)
    } else {
        let number: u64 = number.parse().map_err(|_| wrong())?;
        number.checked_mul(scale)
    };
    bytes
        .and_then(|bytes| usize::try_from(bytes).ok())
        .ok_or_else(|| format!("`{text}` is more than this machine can address"))
}

fn unit_bytes(unit: &str) -> Option<u64> {
    let unit = unit.to_ascii_lowercase();
    let power = match unit.as_bytes().first() {
        None | Some(b'b') => 0,
        Some(b'k') => 1,
        Some(b'm') => 2,
        Some(b'g') => 3,
        Some(b't') => 4,
        Some(_) => return None,
    };
    let base: u64 = match unit.get(usize::from(power > 0)..)? {
        "" | "ib" if power > 0 => 1024,
        "b" if power > 0 => 1000,
        "" | "b" if power == 0 => 1,
        _ => return None,
    };
    Some(base.pow(power))
}

#[cfg(test)]
mod tests {
    use super::parse_size;

    #[test]
    fn every_way_to_write_a_size_is_understood() {
        for (text, bytes) in [
            ("0", 0),
            ("65536", 65536),
            ("100b", 100),
            ("64k", 64 << 10),
            ("64K", 64 << 10),
            ("64kB", 64_000),
            ("64KiB", 64 << 10),
            ("256MiB", 256 << 20),
            ("256 mib", 256 << 20),
            ("1g", 1 << 30),
            ("1.5g", 3 << 29),
            ("2TB", 2_000_000_000_000),
            (" 7m ", 7 << 20),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "m", "-1", "1x", "1 m b", "1.2.3k", "1ib", "0x10", "١k"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_size_beyond_the_address_space_is_refused() {
        for text in [
            "18446744073709551616",
            "18446744073709551615k",
            "99999999.5t",
        ] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
