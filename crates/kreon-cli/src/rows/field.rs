//! Writing one field of a CSV or TSV row.

/// A mark that readers drop from the start of a file, so a field must not start a file with it bare.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Appends `field` to `row`, in quotes if it would not read back as it is.
pub fn push_field(field: &[u8], delimiter: u8, row: &mut Vec<u8>) {
    let special = |byte: &u8| *byte == delimiter || matches!(byte, b'"' | b'\r' | b'\n');
    if !field.iter().any(special) && !field.starts_with(BYTE_ORDER_MARK) {
        row.extend_from_slice(field);
        return;
    }
    row.push(b'"');
    push_quoted(field, row);
    row.push(b'"');
}

/// Appends a part of a field that stands in quotes.
pub fn push_quoted(part: &[u8], row: &mut Vec<u8>) {
    for &byte in part {
        if byte == b'"' {
            row.push(b'"');
        }
        row.push(byte);
    }
}

#[cfg(test)]
mod tests {
    use super::push_field;

    #[test]
    fn only_fields_that_need_quotes_get_them() {
        let row = |field: &str| {
            let mut row = Vec::new();
            push_field(field.as_bytes(), b',', &mut row);
            String::from_utf8(row).unwrap()
        };
        assert_eq!(row("a b\tc'"), "a b\tc'");
        assert_eq!(row(""), "");
        assert_eq!(row("a,b"), "\"a,b\"");
        assert_eq!(row("a\r\nb"), "\"a\r\nb\"");
        assert_eq!(row("say \"hi\""), "\"say \"\"hi\"\"\"");
        assert_eq!(row("\u{feff}a"), "\"\u{feff}a\"");
    }
}
