//! How bytes are written for people and files: text with escapes, hex, or base64.
//!
//! Text keeps UTF-8 as it stands. The only escape is `\xNN`, two hex digits for one byte; any other
//! backslash stands for itself, so that JSON, paths and regular expressions pass unchanged. Output
//! therefore writes a backslash as `\x5c` only where it would read as an escape.

use clap::ValueEnum;
use data_encoding::{BASE64, HEXLOWER, HEXLOWER_PERMISSIVE};

/// How keys or values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Encoding {
    /// UTF-8; \xNN for any byte
    Text,
    /// Two hex digits a byte
    Hex,
    /// Standard base64 with padding
    Base64,
}

/// Bytes that are encoded at once: a multiple of three, for base64.
pub const PIECE_BYTES: usize = 48 << 10;

/// What text output does with control characters (line ends and tabs among them).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controls {
    /// Leave them: one value alone, or a format that quotes them itself.
    Keep,
    /// Escape them: one pair stays on one line.
    Escape,
}

impl Encoding {
    /// Appends `bytes`, written in this encoding, to `out`. Decodes to the same bytes.
    pub fn encode_into(self, bytes: &[u8], controls: Controls, out: &mut String) {
        match self {
            Self::Text => escape_into(bytes, controls, out),
            Self::Hex => HEXLOWER.encode_append(bytes, out),
            Self::Base64 => BASE64.encode_append(bytes, out),
        }
    }

    /// Hands `bytes`, written in this encoding, to `write` a piece at a time: a long value needs no second copy.
    pub fn encode_pieces<E>(
        self,
        bytes: &[u8],
        controls: Controls,
        mut write: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut text, mut rest) = (String::new(), bytes);
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(self.piece_of(rest));
            text.clear();
            self.encode_into(piece, controls, &mut text);
            write(&text)?;
            rest = behind;
        }
        Ok(())
    }

    /// How many bytes can be encoded by themselves.
    fn piece_of(self, bytes: &[u8]) -> usize {
        let most = bytes.len().min(PIECE_BYTES);
        match self {
            Self::Text if most < bytes.len() => (most - 3..=most)
                .rev()
                .find(|at| is_border(bytes, *at))
                // Only bytes that are no UTF-8 stand here: each by itself.
                .unwrap_or(most),
            _ => most,
        }
    }

    /// Appends the bytes that `written` stands for to `out`; the error says what is wrong with it.
    pub fn decode_into(self, written: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        let (name, decoded) = match self {
            Self::Text => {
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

fn escape_into(bytes: &[u8], controls: Controls, out: &mut String) {
    for chunk in bytes.utf8_chunks() {
        let text = chunk.valid();
        let mut plain_from = 0;
        for (at, byte) in text.bytes().enumerate() {
            let escape = match byte {
                b'\\' => escaped_byte(&text.as_bytes()[at..]).is_some(),
                byte => controls == Controls::Escape && byte.is_ascii_control(),
            };
            if escape {
                out.push_str(&text[plain_from..at]);
                push_escape(byte, out);
                plain_from = at + 1;
            }
        }
        out.push_str(&text[plain_from..]);
        for &byte in chunk.invalid() {
            push_escape(byte, out);
        }
    }
}

/// Whether neither a character nor what reads as an escape lies across `at`.
fn is_border(bytes: &[u8], at: usize) -> bool {
    let is_within_escape = |back: usize| bytes.get(at - back..).and_then(escaped_byte).is_some();
    let continues = bytes.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    !continues && !(1..=3).any(is_within_escape)
}

fn push_escape(byte: u8, out: &mut String) {
    out.push_str("\\x");
    HEXLOWER.encode_append(&[byte], out);
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

    fn encode(encoding: Encoding, bytes: &[u8], controls: Controls) -> String {
        let mut out = String::new();
        encoding.encode_into(bytes, controls, &mut out);
        out
    }

    fn decode(encoding: Encoding, written: &[u8]) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        encoding.decode_into(written, &mut out).map(|()| out)
    }

    #[test]
    fn text_escapes_only_what_must_be() {
        let text = |bytes: &[u8]| encode(Encoding::Text, bytes, Controls::Keep);
        assert_eq!(text("grüße\t\n".as_bytes()), "grüße\t\n");
        assert_eq!(text(b"a\xff\x00b"), "a\\xff\0b");
        assert_eq!(text(br#"{"a":"b\nc"}"#), r#"{"a":"b\nc"}"#);
        assert_eq!(text(br"\x41 \x4 \y"), r"\x5cx41 \x4 \y");
        assert_eq!(text(b"\\\xff"), r"\\xff");
    }

    #[test]
    fn lists_escape_control_characters_too() {
        let line = encode(Encoding::Text, b"a\tb\r\n\x1b[1m\x7f\xc3", Controls::Escape);
        assert_eq!(line, r"a\x09b\x0d\x0a\x1b[1m\x7f\xc3");
    }

    #[test]
    fn text_input_takes_escapes_and_leaves_other_backslashes() {
        let text = |written: &str| decode(Encoding::Text, written.as_bytes()).unwrap();
        assert_eq!(text(r"a\x00\xFFb\xfg\x"), b"a\x00\xffb\\xfg\\x");
        assert_eq!(text(r"\\x41\"), br"\A\");
        assert_eq!(text(r"\n"), br"\n");
        assert_eq!(
            decode(Encoding::Text, b"\xff\\x41").unwrap(),
            b"\xffA",
            "bytes that are not UTF-8 pass"
        );
    }

    #[test]
    fn hex_and_base64_refuse_what_is_not_theirs() {
        assert_eq!(decode(Encoding::Hex, b"00fFAb").unwrap(), b"\x00\xff\xab");
        assert!(decode(Encoding::Hex, b"0").is_err());
        assert!(decode(Encoding::Hex, b"0g").is_err());
        assert_eq!(decode(Encoding::Base64, b"AP8=").unwrap(), b"\x00\xff");
        assert!(decode(Encoding::Base64, b"AP8").is_err());
        assert!(decode(Encoding::Base64, b"A P8=").is_err());
    }

    #[test]
    fn pieces_together_are_the_whole() {
        let parts: [&[u8]; 7] = [
            b"\\",
            br"\x41",
            "\u{1F600}".as_bytes(),
            b"\x80",
            b"a",
            b"\xc3",
            b"\n",
        ];
        let mut bytes = Vec::new();
        let mut number = 1_u64;
        while bytes.len() < 40 * PIECE_BYTES {
            number = number.wrapping_mul(6364136223846793005).wrapping_add(1);
            // Long runs of one kind, too.
            let part = parts[(number >> 40) as usize % parts.len()];
            (0..(number >> 50) % 9000).for_each(|_| bytes.extend_from_slice(part));
        }
        for encoding in [Encoding::Text, Encoding::Hex, Encoding::Base64] {
            let mut whole = String::new();
            let pieces = encoding.encode_pieces(&bytes, Controls::Escape, |piece| {
                assert!(piece.len() <= 5 * PIECE_BYTES);
                whole.push_str(piece);
                Ok::<_, ()>(())
            });
            assert_eq!(pieces, Ok(()));
            assert!(
                whole == encode(encoding, &bytes, Controls::Escape),
                "{encoding:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn every_encoding_reads_back_what_it_wrote(
            bytes in prop::collection::vec(
                prop_oneof![any::<u8>(), prop::sample::select(&br"\xx0aF"[..])], 0..40)
        ) {
            for encoding in [Encoding::Text, Encoding::Hex, Encoding::Base64] {
                for controls in [Controls::Keep, Controls::Escape] {
                    let written = encode(encoding, &bytes, controls);
                    prop_assert_eq!(decode(encoding, written.as_bytes()).unwrap(), bytes.clone());
                    if controls == Controls::Escape {
                        prop_assert!(!written.contains(char::is_control) || !written.is_ascii());
                    }
                }
            }
        }
    }
}
