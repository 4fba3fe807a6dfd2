//! Pairs of a JSON lines file: one object a line.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};

use serde_json::value::RawValue;

use super::pair::{Encodings, Pair, PairReader, Step, parse_expiry};
use crate::encoding::Encoding;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Ends the name of a field that `export` writes in base64 because its bytes are no text.
pub const BASE64_SUFFIX: &str = "_base64";

/// The name of the field in which `export` writes when a pair expires.
pub const EXPIRES: &str = "expires";

/// Reads pairs from JSON lines.
pub struct JsonLinesReader<R> {
    source: R,
    key: String,
    /// The field that is the value; none: the whole object as given.
    value: Option<String>,
    /// The field that says when a pair expires, where there is one.
    expires: Option<String>,
    /// No field was named: `key_base64` and `value_base64` may stand for `key` and `value`.
    as_exported: bool,
    encodings: Encodings,
    row_bytes_max: usize,
    line: Vec<u8>,
    lines_read: u64,
}

impl<R: BufRead> JsonLinesReader<R> {
    /// With neither field named, a line is `{"key":..,"value":..}` as `export` writes it, or `key_base64` and
    /// `value_base64` where the bytes are no text. With only
    /// `key` named, the value is the whole object. The field `expires` is a number of milliseconds since 1970, or null, or
    /// not there.
    pub fn new(
        source: R,
        key: Option<String>,
        value: Option<String>,
        expires: Option<String>,
        encodings: Encodings,
        row_bytes_max: usize,
    ) -> Self {
        let as_exported = key.is_none() && value.is_none();
        Self {
            source,
            key: key.unwrap_or_else(|| "key".to_owned()),
            value: value.or(as_exported.then(|| "value".to_owned())),
            expires,
            as_exported,
            encodings,
            row_bytes_max,
            line: Vec::new(),
            lines_read: 0,
        }
    }

    /// Whether values are whole objects: then no value encoding can apply.
    pub fn value_is_whole_object(&self) -> bool {
        self.value.is_none()
    }

    /// Reads a line into `self.line`: `None` at the end of the input, false if it is over the limit.
    fn read_line(&mut self) -> io::Result<Option<bool>> {
        self.line.clear();
        let max = self.row_bytes_max as u64;
        let taken = self
            .source
            .by_ref()
            .take(max.saturating_add(1))
            .read_until(b'\n', &mut self.line)?;
        if taken == 0 {
            return Ok(None);
        }
        self.lines_read += 1;
        let whole = taken as u64 <= max || self.line.ends_with(b"\n");
        if !whole {
            self.source.skip_until(b'\n')?;
        }
        if self.lines_read == 1 && self.line.starts_with(BYTE_ORDER_MARK) {
            self.line.drain(..BYTE_ORDER_MARK.len());
        }
        Ok(Some(whole))
    }

    fn fill(&self, pair: &mut Pair) -> Result<(), String> {
        let object = self.line.trim_ascii();
        let fields: BTreeMap<String, &RawValue> =
            serde_json::from_slice(object).map_err(|error| describe(&error))?;
        let (key, keys) = self.field(&fields, &self.key, self.encodings.keys)?;
        if key.starts_with(['{', '[', 'n']) {
            return Err(format!("field `{}` is no string or number", self.key));
        }
        decode(key, keys, &mut pair.key).map_err(|reason| format!("the key is {reason}"))?;
        match &self.value {
            None => pair.value.extend_from_slice(object),
            Some(name) => {
                let (value, values) = self.field(&fields, name, self.encodings.values)?;
                decode(value, values, &mut pair.value)
                    .map_err(|reason| format!("the value is {reason}"))?;
            }
        }
        let expires = self.expires.as_ref().and_then(|name| fields.get(name));
        pair.expires_ms = match expires.map(|raw| raw.get()) {
            None | Some("null") => None,
            Some(written) => Some(parse_expiry(written)?),
        };
        Ok(())
    }

    /// The JSON of the field called `name` and its encoding.
    fn field<'a>(
        &self,
        fields: &BTreeMap<String, &'a RawValue>,
        name: &str,
        encoding: Encoding,
    ) -> Result<(&'a str, Encoding), String> {
        if let Some(raw) = fields.get(name) {
            return Ok((raw.get(), encoding));
        }
        let base64 = match self.as_exported {
            true => fields.get(&format!("{name}{BASE64_SUFFIX}")),
            false => None,
        };
        base64
            .map(|raw| (raw.get(), Encoding::Base64))
            .ok_or_else(|| format!("there is no field `{name}`"))
    }
}

impl<R: BufRead> PairReader for JsonLinesReader<R> {
    fn next(&mut self, pair: &mut Pair) -> io::Result<Step> {
        pair.clear();
        loop {
            let whole = self.read_line()?;
            pair.line = self.lines_read;
            return Ok(match whole {
                None => Step::End,
                Some(false) => Step::Bad("the row is too long (--row-max)".into()),
                Some(true) if self.line.trim_ascii().is_empty() => continue,
                Some(true) => match self.fill(pair) {
                    Ok(()) => Step::Pair,
                    Err(reason) => Step::Bad(reason),
                },
            });
        }
    }
}

/// A string gives the bytes that it stands for in `encoding`; anything else its JSON text as given.
fn decode(json: &str, encoding: Encoding, out: &mut Vec<u8>) -> Result<(), String> {
    if !json.starts_with('"') {
        out.extend_from_slice(json.as_bytes());
        return Ok(());
    }
    let text: String = serde_json::from_str(json).map_err(|error| describe(&error))?;
    encoding.decode_into(text.as_bytes(), out)
}

/// The parser's words, without its own line number: it sees one line only.
fn describe(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let reason = text.split(" at line ").next().unwrap_or(&text);
    format!("not a JSON object: {reason} (column {})", error.column())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: Encodings = Encodings {
        keys: Encoding::Text,
        values: Encoding::Text,
    };

    /// `key=value` of each pair, `line: reason` of each bad row.
    fn rows(text: &[u8], key: Option<&str>, value: Option<&str>, max: usize) -> Vec<String> {
        let owned = |name: Option<&str>| name.map(str::to_owned);
        let expires = Some(EXPIRES.to_owned());
        let mut reader = JsonLinesReader::new(text, owned(key), owned(value), expires, TEXT, max);
        let mut pair = Pair::default();
        let mut rows = Vec::new();
        loop {
            match reader.next(&mut pair).unwrap() {
                Step::End => return rows,
                Step::Pair => rows.push(pair.shown()),
                Step::Bad(reason) => rows.push(format!("{}: {reason}", pair.line)),
            }
        }
    }

    #[test]
    fn lines_as_exported_need_no_names() {
        let text =
            b"{\"key\":\"a\\u00e9\",\"value\":\"x\\\\x41\\n\"}\r\n{\"value\":\"\",\"key\":\"\"}";
        assert_eq!(rows(text, None, None, 1000), ["aé=x\\x41\n", "="]);
    }

    #[test]
    fn bytes_that_are_no_text_stand_in_base64_in_exported_lines_only() {
        let text = b"{\"key_base64\":\"AEE=\",\"value_base64\":\"Qg==\"}\n{\"key\":\"k\",\"value_base64\":\"!\"}";
        let told = rows(text, None, None, 1000);
        assert_eq!(told[0], "\0A=B");
        assert!(
            told[1].starts_with("2: the value is not base64"),
            "{told:?}"
        );
        let named = rows(text, Some("key"), Some("value"), 1000);
        assert_eq!(named[0], "1: there is no field `key`");
    }

    #[test]
    fn an_expiry_is_a_whole_number_and_holds_for_its_row_only() {
        let row = |expires: &str| format!("{{\"key\":\"k\",\"value\":\"v\"{expires}}}\n");
        let (with, without) = (row(",\"expires\":1700000000000"), row(""));
        let null = row(",\"expires\":null");
        let text = [with.clone(), without, with, null].concat();
        let told = rows(text.as_bytes(), None, None, 1000);
        let ends = "k=v until 1700000000000";
        assert_eq!(told, [ends, "k=v", ends, "k=v"]);
        for wrong in ["-1", "1.5", "1e3", "\"7\"", "true", "18446744073709551616"] {
            let text = row(&format!(",\"expires\":{wrong}"));
            let told = rows(text.as_bytes(), None, None, 1000);
            assert!(
                told[0].starts_with("1: the expiry is no number"),
                "{told:?}"
            );
        }
    }

    #[test]
    fn a_named_key_takes_the_whole_object_as_given() {
        let text = br#"  { "id" : 7 , "n":1e2, "n":3,"deep":{"a":[1,"\u00e9"]}}  "#;
        let rows = rows(text, Some("id"), None, 1000);
        assert_eq!(
            rows,
            [r#"7={ "id" : 7 , "n":1e2, "n":3,"deep":{"a":[1,"\u00e9"]}}"#]
        );
    }

    #[test]
    fn a_named_value_is_a_string_decoded_or_other_json_as_given() {
        let text =
            b"{\"k\":\"a\",\"v\":\"s\"}\n{\"k\":true,\"v\":1.50}\n{\"k\":3,\"v\":{\"x\": null}}\n";
        let rows = rows(text, Some("k"), Some("v"), 1000);
        assert_eq!(rows, ["a=s", "true=1.50", "3={\"x\": null}"]);
    }

    #[test]
    fn what_is_no_object_is_bad_and_the_next_line_is_read() {
        let text = b"{\"key\":\"a\",\"value\":\"1\"}\n\n[1]\n{\"key\":\"b\"}\n{\"key\":null,\"value\":1}\n{\"key\":\"c\"\n\"\xff\"\n{\"key\":\"\\ud800\",\"value\":\"\"}\n{} {}\n{\"key\":\"d\",\"value\":\"2\"}";
        let rows = rows(text, None, None, 1000);
        assert_eq!(rows[0], "a=1");
        assert!(rows[1].starts_with("3: not a JSON object"), "{}", rows[1]);
        assert_eq!(rows[2], "4: there is no field `value`");
        assert_eq!(rows[3], "5: field `key` is no string or number");
        for (row, line) in rows[4..8].iter().zip(6..) {
            assert!(row.starts_with(&format!("{line}: ")), "{row}");
        }
        assert_eq!(rows[8], "d=2");
    }

    #[test]
    fn a_line_over_the_limit_is_passed_over_and_the_next_is_whole() {
        let long = "x".repeat(10_000);
        let text =
            format!("{{\"key\":\"{long}\",\"value\":\"\"}}\n{{\"key\":\"a\",\"value\":\"1\"}}\n");
        let over = rows(text.as_bytes(), None, None, 1000);
        assert_eq!(over, ["1: the row is too long (--row-max)", "a=1"]);
        let held = rows(text.as_bytes(), None, None, 20_000);
        assert_eq!(held[0].len(), 10_001);
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_line() {
        let text = "\u{feff}{\"key\":\"a\",\"value\":\"1\"}";
        assert_eq!(rows(text.as_bytes(), None, None, 100), ["a=1"]);
    }
}
