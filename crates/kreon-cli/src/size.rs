//! Sizes as people write them: `65536`, `64M`, `256MiB`, `1.5g`.

use parse_size::Config;
use serde::{Deserialize, Deserializer};

/// Units count in powers of 1024, with or without `i` and `B`: memory and volumes are cut in them.
const SIZES: Config = Config::new().with_binary();

/// Bytes of a size.
pub fn parse_size(text: &str) -> Result<usize, String> {
    let told = |reason: &dyn std::fmt::Display| {
        format!("`{text}` is not a size such as 65536, 64M, 256MiB or 1.5g: {reason}")
    };
    let bytes = SIZES.parse_size(text.trim()).map_err(|error| match error {
        parse_size::Error::PosOverflow => told(&"it is too large"),
        error if text.trim_start().starts_with('-') => told(&format!("it is negative ({error})")),
        error => told(&error),
    })?;
    usize::try_from(bytes).map_err(|_| told(&"it is too large"))
}

/// A number of bytes, or a text as on the command line: for files of settings.
pub fn deserialize_size<'de, D: Deserializer<'de>>(from: D) -> Result<Option<usize>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Size {
        Bytes(usize),
        Text(String),
    }
    match Size::deserialize(from)? {
        Size::Bytes(bytes) => Ok(Some(bytes)),
        Size::Text(text) => parse_size(&text)
            .map(Some)
            .map_err(serde::de::Error::custom),
    }
}

#[cfg(test)]
mod tests {
    use super::parse_size;

    #[test]
    fn sizes_are_plain_bytes_or_count_in_powers_of_1024() {
        for (text, bytes) in [
            ("0", 0),
            ("65536", 65536),
            ("100b", 100),
            ("64k", 64 << 10),
            ("64K", 64 << 10),
            ("64kB", 64 << 10),
            ("64KiB", 64 << 10),
            ("64M", 64 << 20),
            ("256MiB", 256 << 20),
            ("256 mib", 256 << 20),
            ("1G", 1 << 30),
            ("1.5g", 3 << 29),
            (" 7m ", 7 << 20),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn garbage_negative_and_huge_sizes_are_told_apart() {
        for (text, told) in [
            ("", "256MiB"),
            ("m", "256MiB"),
            ("1x", "256MiB"),
            ("1.2.3k", "256MiB"),
            ("0x10", "256MiB"),
            ("-1", "negative"),
            ("-5MiB", "negative"),
            ("18446744073709551616", "too large"),
            ("18446744073709551615k", "too large"),
            ("99999999E", "too large"),
        ] {
            let error = parse_size(text).unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
