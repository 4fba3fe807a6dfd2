//! What the command reads from its user and from files.

use arbitrary::{Arbitrary, Unstructured};
use kreon_cli::parsing::{
    Controls, DelimitedColumns, DelimitedReader, Encoding, Encodings, JsonLinesReader, Pair,
    PairReader, Step, parse_size, push_field,
};

use crate::case::with;

const ENCODINGS: [Encoding; 4] = [
    Encoding::Text,
    Encoding::Escapes,
    Encoding::Hex,
    Encoding::Base64,
];

/// A row of more bytes is refused.
const ROW_BYTES_MAX: usize = 4096;

/// Sizes, encodings, rows of files.
pub fn input(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = parse_size(&text);
    for encoding in ENCODINGS {
        let _ = encoding.decode_into(bytes, &mut Vec::new());
        for controls in [Controls::KeepLines, Controls::Escape] {
            let mut written = Vec::new();
            encoding.encode_into(bytes, controls, &mut written);
            let mut read = Vec::new();
            assert_eq!(encoding.decode_into(&written, &mut read), Ok(()));
            assert_eq!(read, bytes);
        }
    }
    with(bytes, |u| {
        let encodings = Encodings {
            keys: *u.choose(&ENCODINGS)?,
            values: *u.choose(&ENCODINGS)?,
        };
        if u.arbitrary()? {
            json_lines(u, encodings)
        } else {
            delimited(u, encodings)
        }
    });
}

fn json_lines(u: &mut Unstructured<'_>, encodings: Encodings) -> arbitrary::Result<()> {
    let key = bool::arbitrary(u)?.then(|| "k".to_owned());
    let value = bool::arbitrary(u)?.then(|| "v".to_owned());
    let rest = u.bytes(u.len())?;
    let row_bytes_max = ROW_BYTES_MAX;
    let expires = Some("e".to_owned());
    let mut reader = JsonLinesReader::new(rest, key, value, expires, encodings, row_bytes_max);
    read_all(&mut reader, rest.len());
    Ok(())
}

fn delimited(u: &mut Unstructured<'_>, encodings: Encodings) -> arbitrary::Result<()> {
    let delimiter = *u.choose(b",\t")?;
    let column = |name: Option<u8>| name.map(|name| name.to_string());
    let mut columns = DelimitedColumns {
        delimiter,
        quotes: u.arbitrary()?,
        header: u.arbitrary()?,
        key: column(u.arbitrary()?),
        value: column(u.arbitrary()?),
        expires: None,
        encodings,
        row_bytes_max: ROW_BYTES_MAX,
    };
    // A field that was written is read back, whatever it holds.
    let (field, other) = (Vec::<u8>::arbitrary(u)?, Vec::<u8>::arbitrary(u)?);
    let mut row = Vec::new();
    push_field(&field, delimiter, &mut row);
    row.push(delimiter);
    push_field(&other, delimiter, &mut row);
    row.push(b'\n');
    reads_back(&row, &field, &other, delimiter);

    columns.expires = column(u.arbitrary()?);
    let rest = u.bytes(u.len())?;
    if let Ok(mut reader) = DelimitedReader::new(rest, &columns) {
        read_all(&mut reader, rest.len());
    }
    Ok(())
}

fn reads_back(row: &[u8], field: &[u8], other: &[u8], delimiter: u8) {
    let columns = DelimitedColumns {
        delimiter,
        quotes: true,
        header: false,
        key: None,
        value: None,
        expires: None,
        encodings: Encodings {
            keys: Encoding::Text,
            values: Encoding::Text,
        },
        row_bytes_max: 1 << 20,
    };
    let Ok(mut reader) = DelimitedReader::new(row, &columns) else {
        panic!("a row of two fields: {row:?}");
    };
    let mut pair = Pair::default();
    assert_eq!(reader.next(&mut pair).ok(), Some(Step::Pair));
    assert_eq!((pair.key.as_slice(), pair.value.as_slice()), (field, other));
}

/// Reads all rows: not more than there are bytes, and no memory that the bytes do not explain.
fn read_all(reader: &mut impl PairReader, input_bytes: usize) {
    let mut pair = Pair::default();
    for _ in 0..=input_bytes {
        match reader.next(&mut pair) {
            Ok(Step::End) => return,
            Ok(Step::Pair | Step::Bad(_)) => {
                assert!(pair.key.len() + pair.value.len() <= 4 * input_bytes + 16);
            }
            Err(error) => panic!("reading memory cannot fail: {error}"),
        }
    }
    panic!("more rows than bytes");
}
