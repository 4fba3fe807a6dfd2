//! How bytes are written for people and files: as they are, with escapes, as hex, or as base64.
//!
//! With escapes UTF-8 stays as it stands. The only escape is `\xNN`, two hex digits for one byte; any other
//! backslash stands for itself, so that JSON, paths and regular expressions stay readable. Output writes a
//! backslash as `\x5c` only where it would read as an escape.

use clap::ValueEnum;
use data_encoding::{BASE64, HEXLOWER, HEXLOWER_PERMISSIVE};

/// How keys or values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Encoding {
    /// The bytes as they are
    Text,
    /// UTF-8, with \xNN for any other byte
    Escapes,
    /// Two hex digits a byte
    Hex,
    /// Standard base64 with padding
    Base64,
}

/// Bytes of a long value that are encoded at once: a multiple of three, for base64.
pub const PIECE_BYTES: usize = 48 << 10;

/// Which control characters are left as they are where output is written with escapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controls {
    /// Line feeds and tabs: one value alone, or a format that quotes them itself.
    KeepLines,
    /// None: one pair stays on one line.
    Escape,
}

impl Encoding {
    /// The encoding of keys and values in lists and messages, where each must stay on its line.
    #[must_use]
    pub fn in_lists(self) -> Self {
        match self {
            Self::Text => Self::Escapes,
            other => other,
        }
    }

    /// Appends `bytes`, written in this encoding, to `out`. Decodes to the same bytes.
    pub fn encode_into(self, bytes: &[u8], controls: Controls, out: &mut Vec<u8>) {
        let digits = match self {
            Self::Text => return out.extend_from_slice(bytes),
            Self::Escapes => return escape_into(bytes, controls, out),
            Self::Hex => &HEXLOWER,
            Self::Base64 => &BASE64,
        };
        let start = out.len();
        out.resize(start + digits.encode_len(bytes.len()), 0);
        digits.encode_mut(bytes, &mut out[start..]);
    }

    /// Hands `bytes`, written in this encoding, to `write` a piece at a time: a long value needs no second copy.
    /// The pieces together are what [`encode_into`](Self::encode_into) gives. Of UTF-8 each is UTF-8.
    pub fn encode_pieces<E>(
        self,
        bytes: &[u8],
        controls: Controls,
        mut write: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut text, mut rest) = (Vec::new(), bytes);
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(self.piece_len(rest));
            match self {
                Self::Text => write(piece)?,
                _ => {
                    text.clear();
                    self.encode_into(piece, controls, &mut text);
                    write(&text)?;
                }
            }
            rest = behind;
        }
        Ok(())
    }

    /// How many of the first bytes can be encoded by themselves.
    fn piece_len(self, bytes: &[u8]) -> usize {
        let most = bytes.len().min(PIECE_BYTES);
        match self {
            Self::Text | Self::Escapes if most < bytes.len() => (most - 3..=most)
                .rev()
                .find(|at| is_border(bytes, *at))
                // Bytes that continue no character: each is encoded by itself.
                .unwrap_or(most),
            _ => most,
        }
    }

    /// Appends the bytes that `written` stands for to `out`; the error says what is wrong with it.
    pub fn decode_into(self, written: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        let (name, decoded) = match self {
            Self::Text => {
                out.extend_from_slice(written);
                return Ok(());
            }
            Self::Escapes => {
                unescape_into(written, out);
                return Ok(());
            }
            Self::Hex => ("hex", HEXLOWER_PERMISSIVE.decode(written)),
            Self::Base64 => ("base64", BASE64.decode(written)),
        };
        match decoded {
            Ok(bytes) => {
                out.extend_from_slice(&bytes);
                Ok(())
            }
            Err(error) => Err(format!("not {name}: {error}")),
        }
    }
}

/// A key for a message or a list, on one line.
pub fn shown(encoding: Encoding, bytes: &[u8]) -> String {
    let mut text = Vec::new();
    encoding
        .in_lists()
        .encode_into(bytes, Controls::Escape, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Whether a terminal would show `bytes` as something else than they are.
pub fn needs_escapes(bytes: &[u8]) -> bool {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.chars().any(|c| is_escaped(c, Controls::KeepLines)),
        Err(_) => true,
    }
}

/// Control characters, and the mark that readers drop from the start of a file.
fn is_escaped(c: char, controls: Controls) -> bool {
    match c {
        '\n' | '\t' => controls == Controls::Escape,
        c => c.is_control() || c == '\u{feff}',
    }
}

fn escape_into(bytes: &[u8], controls: Controls, out: &mut Vec<u8>) {
    for chunk in bytes.utf8_chunks() {
        let text = chunk.valid();
        let mut plain_from = 0;
        for (at, c) in text.char_indices() {
            let escape = match c {
                '\\' => escaped_byte(&text.as_bytes()[at..]).is_some(),
                c => is_escaped(c, controls),
            };
            if escape {
                let after = at + c.len_utf8();
                out.extend_from_slice(&text.as_bytes()[plain_from..at]);
                push_escapes(&text.as_bytes()[at..after], out);
                plain_from = after;
            }
        }
        out.extend_from_slice(&text.as_bytes()[plain_from..]);
        push_escapes(chunk.invalid(), out);
    }
}

/// Whether neither a character nor an escape lies across `at`.
fn is_border(bytes: &[u8], at: usize) -> bool {
    let reads_as_escape = |from: usize| bytes.get(from..).and_then(escaped_byte).is_some();
    let continues = bytes.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    !continues && !(at.saturating_sub(3)..at).any(reads_as_escape)
}

fn push_escapes(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        out.extend_from_slice(b"\\x");
        let mut digits = [0; 2];
        HEXLOWER.encode_mut(&[*byte], &mut digits);
        out.extend_from_slice(&digits);
    }
}

fn unescape_into(mut text: &[u8], out: &mut Vec<u8>) {
    while let Some(at) = text.iter().position(|&byte| byte == b'\\') {
        let (plain, rest) = text.split_at(at);
        out.extend_from_slice(plain);
        let (byte, taken_bytes) = match escaped_byte(rest) {
            Some(byte) => (byte, 4),
            None => (b'\\', 1),
        };
        out.push(byte);
        text = rest.get(taken_bytes..).unwrap_or_default();
    }
    out.extend_from_slice(text);
}

/// The byte of the escape that `text` starts with, if it starts with one.
fn escaped_byte(text: &[u8]) -> Option<u8> {
    let [b'\\', b'x', high, low, ..] = *text else {
        return None;
    };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [Encoding; 4] = [
        Encoding::Text,
        Encoding::Escapes,
        Encoding::Hex,
        Encoding::Base64,
    ];

    fn encode(encoding: Encoding, bytes: &[u8], controls: Controls) -> Vec<u8> {
        let mut out = Vec::new();
        encoding.encode_into(bytes, controls, &mut out);
        out
    }

    fn escaped(bytes: &[u8], controls: Controls) -> String {
        String::from_utf8(encode(Encoding::Escapes, bytes, controls)).unwrap()
    }

    fn decode(encoding: Encoding, written: &[u8]) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        encoding.decode_into(written, &mut out).map(|()| out)
    }

    #[test]
    fn text_is_the_bytes_themselves_both_ways() {
        let bytes = b"C:\x64\new \x00 \xff\n";
        assert_eq!(decode(Encoding::Text, bytes).unwrap(), bytes);
        assert_eq!(
            encode(Encoding::Text, b"\xff\0\x1b", Controls::Escape),
            b"\xff\0\x1b"
        );
    }

    #[test]
    fn only_what_must_be_is_escaped() {
        let text = |bytes: &[u8]| escaped(bytes, Controls::KeepLines);
        assert_eq!(text("grüße\t\n".as_bytes()), "grüße\t\n");
        assert_eq!(text(b"a\xff\x00b\r"), r"a\xff\x00b\x0d");
        assert_eq!(text(br#"{"a":"b\nc"}"#), r#"{"a":"b\nc"}"#);
        assert_eq!(text(br"\x41 \x4 \y"), r"\x5cx41 \x4 \y");
        assert_eq!(text(b"\\\xff"), r"\\xff");
        assert_eq!(
            text("\u{feff}a\u{9b}1m".as_bytes()),
            r"\xef\xbb\xbfa\xc2\x9b1m"
        );
    }

    #[test]
    fn lists_escape_every_control_character() {
        let line = escaped(b"a\tb\r\n\x1b[1m\x7f\xc3", Controls::Escape);
        assert_eq!(line, r"a\x09b\x0d\x0a\x1b[1m\x7f\xc3");
    }

    #[test]
    fn escapes_are_decoded_and_other_backslashes_stay() {
        let text = |written: &str| decode(Encoding::Escapes, written.as_bytes()).unwrap();
        assert_eq!(text(r"a\x00\xFFb\xfg\x"), b"a\x00\xffb\\xfg\\x");
        assert_eq!(text(r"\\x41\"), br"\A\");
        assert_eq!(text(r"\n"), br"\n");
        assert_eq!(
            decode(Encoding::Escapes, b"\xff\\x41").unwrap(),
            b"\xffA",
            "bytes that are not UTF-8 pass"
        );
    }

    #[test]
    fn hex_and_base64_refuse_other_digits() {
        assert_eq!(decode(Encoding::Hex, b"00fFAb").unwrap(), b"\x00\xff\xab");
        assert!(decode(Encoding::Hex, b"0").is_err());
        assert!(decode(Encoding::Hex, b"0g").is_err());
        assert_eq!(decode(Encoding::Base64, b"AP8=").unwrap(), b"\x00\xff");
        assert!(decode(Encoding::Base64, b"AP8").is_err());
        assert!(decode(Encoding::Base64, b"A P8=").is_err());
    }

    #[test]
    fn a_terminal_is_spared_control_characters_and_broken_text() {
        for bytes in [
            &b"\x1b[2J"[..],
            b"a\rb",
            b"\xff",
            b"\0",
            "\u{9b}".as_bytes(),
        ] {
            assert!(needs_escapes(bytes), "{bytes:?}");
        }
        for bytes in [&b"C:\\x64"[..], b"two\nlines\t", "größe".as_bytes(), b""] {
            assert!(!needs_escapes(bytes), "{bytes:?}");
        }
    }

    /// What the pieces are together, and whether each is UTF-8.
    fn joined(encoding: Encoding, bytes: &[u8], controls: Controls) -> (Vec<u8>, bool) {
        let (mut whole, mut all_text) = (Vec::new(), true);
        let done = encoding.encode_pieces(bytes, controls, |piece| {
            assert!(!piece.is_empty() && piece.len() <= 4 * PIECE_BYTES);
            all_text &= str::from_utf8(piece).is_ok();
            whole.extend_from_slice(piece);
            Ok::<_, ()>(())
        });
        assert_eq!(done, Ok(()));
        (whole, all_text)
    }

    #[track_caller]
    fn check_pieces(bytes: &[u8]) {
        let is_text = str::from_utf8(bytes).is_ok();
        for encoding in ALL {
            for controls in [Controls::KeepLines, Controls::Escape] {
                let (whole, all_text) = joined(encoding, bytes, controls);
                assert!(whole == encode(encoding, bytes, controls), "{encoding:?}");
                assert!(all_text || encoding == Encoding::Text && !is_text);
            }
        }
    }

    #[test]
    fn no_piece_ends_within_a_character_or_an_escape() {
        for part in [
            "\u{1f600}".as_bytes(),
            "東".as_bytes(),
            br"\x41",
            br"\\x41",
            b"\x80",
            br"\x41\xff\xff",
        ] {
            for before in 0..8 {
                let mut bytes = vec![b'a'; before];
                bytes.extend(
                    part.iter()
                        .cycle()
                        .take(2 * PIECE_BYTES / part.len() * part.len()),
                );
                check_pieces(&bytes);
            }
        }
        check_pieces(b"");
        check_pieces(&[0; PIECE_BYTES]);
    }

    #[test]
    fn a_failed_write_ends_the_pieces() {
        let mut writes = 0;
        let failed = Encoding::Hex.encode_pieces(&[0; 3 * PIECE_BYTES], Controls::Escape, |_| {
            writes += 1;
            Err(())
        });
        assert_eq!((failed, writes), (Err(()), 1));
    }

    const BORDERS: [&[u8]; 13] = [
        b"\\",
        br"\x4",
        br"\x41",
        b"x",
        b"7",
        "\u{1f600}".as_bytes(),
        "\u{feff}".as_bytes(),
        "é".as_bytes(),
        b"\x80",
        b"\xf0\x9f",
        b"\xe0",
        b"\n",
        b"\"",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn pieces_together_are_the_whole(
            around in prop::collection::vec(prop::sample::select(&BORDERS[..]), 0..12),
            shift in 0..16_usize,
            behind in 0..4_usize,
        ) {
            // The border lies somewhere in `around`, or near it.
            let mut bytes = vec![b'.'; PIECE_BYTES - shift];
            around.iter().for_each(|part| bytes.extend_from_slice(part));
            bytes.resize(bytes.len() + behind * (PIECE_BYTES - 10), b'-');
            around.iter().for_each(|part| bytes.extend_from_slice(part));
            check_pieces(&bytes);
        }
    }

    proptest! {
        #[test]
        fn every_encoding_reads_back_what_it_wrote(
            bytes in prop::collection::vec(
                prop_oneof![any::<u8>(), prop::sample::select(&br"\xx0aF"[..])], 0..40)
        ) {
            for encoding in ALL {
                for controls in [Controls::KeepLines, Controls::Escape] {
                    let written = encode(encoding, &bytes, controls);
                    prop_assert_eq!(decode(encoding, &written).unwrap(), bytes.clone());
                    if encoding.in_lists() == encoding && controls == Controls::Escape {
                        let written = String::from_utf8(written).unwrap();
                        prop_assert!(!written.contains(char::is_control));
                    }
                }
            }
        }
    }
}
