//! Words of a request of one line, as people type them into a terminal: `SET "a key" 'it\'s' \x41`.

use bytes::Bytes;

/// A quote has no partner, or something follows the closing one directly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unbalanced;

/// Appends the words of `line` to `words`. Between double quotes `\n`, `\r`, `\t`, `\b`, `\a`, `\xNN` and escaped characters
/// are decoded; between single quotes only `\'`.
///
/// # Errors
/// `Unbalanced`.
pub(super) fn words(line: &[u8], words: &mut Vec<Bytes>) -> Result<(), Unbalanced> {
    let mut rest = line;
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Ok(());
        }
        let (word, behind) = word(rest)?;
        words.push(word.into());
        rest = behind;
    }
}

/// The first word, and what follows it.
fn word(mut rest: &[u8]) -> Result<(Vec<u8>, &[u8]), Unbalanced> {
    let mut word = Vec::new();
    while let Some((byte, behind)) = rest.split_first() {
        rest = match byte {
            byte if byte.is_ascii_whitespace() => break,
            b'"' => double_quoted(behind, &mut word)?,
            b'\'' => single_quoted(behind, &mut word)?,
            plain => {
                word.push(*plain);
                behind
            }
        };
    }
    Ok((word, rest))
}

fn double_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Result<&'a [u8], Unbalanced> {
    loop {
        rest = match rest {
            [b'"', behind @ ..] => return closed(behind),
            [b'\\', b'x', high, low, behind @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                word.push(nibble(*high) << 4 | nibble(*low));
                behind
            }
            [b'\\', escaped, behind @ ..] => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                behind
            }
            [plain, behind @ ..] => {
                word.push(*plain);
                behind
            }
            [] => return Err(Unbalanced),
        }
    }
}

fn single_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Result<&'a [u8], Unbalanced> {
    loop {
        rest = match rest {
            [b'\'', behind @ ..] => return closed(behind),
            [b'\\', b'\'', behind @ ..] => {
                word.push(b'\'');
                behind
            }
            [plain, behind @ ..] => {
                word.push(*plain);
                behind
            }
            [] => return Err(Unbalanced),
        }
    }
}

/// A blank or nothing follows a closing quote.
fn closed(behind: &[u8]) -> Result<&[u8], Unbalanced> {
    match behind.first() {
        Some(byte) if !byte.is_ascii_whitespace() => Err(Unbalanced),
        _ => Ok(behind),
    }
}

fn nibble(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        other => (other | 0x20) - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> Result<Vec<Bytes>, Unbalanced> {
        let mut found = Vec::new();
        words(line.as_bytes(), &mut found)?;
        Ok(found)
    }

    #[test]
    fn quotes_and_escapes_are_those_of_redis() {
        for (line, words) in [
            ("  set a\tb ", &["set", "a", "b"][..]),
            (r#""a b" 'c d' """#, &["a b", "c d", ""]),
            (r#""\x41\n\q\"" 'it\'s \n'"#, &["A\nq\"", "it's \\n"]),
            (r#"ab"cd" x"#, &["abcd", "x"]),
            (r#""\xg1""#, &["xg1"]),
            ("", &[]),
        ] {
            assert_eq!(split(line).unwrap(), words, "{line}");
        }
    }

    #[test]
    fn a_quote_without_a_partner_is_an_error() {
        for line in ["\"a", "'a", "\"a\"b", "'a'b", "\"a\\", "x \""] {
            assert_eq!(split(line), Err(Unbalanced), "{line}");
        }
    }
}
