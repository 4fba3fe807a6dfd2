//! Pairs of a CSV or TSV file: which columns are key and value, and their bytes.

use std::io::{self, BufRead};

use kreon::{Error, Result};

use super::field::push_field;
use super::pair::{Encodings, Pair, PairReader, Step, parse_expiry};
use super::records::{Read, Records};

const OPEN_QUOTE: &str = "a quote that opens in this row is never closed";

/// What is known of the columns before the file is opened.
#[derive(Clone, Debug)]
pub struct DelimitedColumns {
    /// What stands between two fields.
    pub delimiter: u8,
    /// Whether `"` quotes a field.
    pub quotes: bool,
    /// Whether the first row names the columns.
    pub header: bool,
    /// Name or 1-based number; the first column if not said.
    pub key: Option<String>,
    /// Name or 1-based number; if not said, the only column beside key and expiry, and of more all of them.
    pub value: Option<String>,
    /// Name or 1-based number of the column that says when a pair expires, in milliseconds since 1970 or empty; if not said,
    /// none does.
    pub expires: Option<String>,
    /// How keys and values are written.
    pub encodings: Encodings,
    /// A longer row is refused.
    pub row_bytes_max: usize,
}

/// Reads pairs from CSV or TSV rows.
pub struct DelimitedReader<R> {
    records: Records<R>,
    delimiter: u8,
    encodings: Encodings,
    columns: usize,
    key: usize,
    value: Value,
    expires: Option<usize>,
    /// A record that was read to learn the columns and is still to be delivered.
    pending: Option<Read>,
}

/// Where the value of a row stands.
#[derive(Clone, Copy, Debug)]
enum Value {
    Column(usize),
    /// All fields but those of key and expiry, as a row of the same format.
    Rest,
}

impl<R: BufRead> DelimitedReader<R> {
    /// Reads the first row and finds the columns. Fails if they are not there.
    pub fn new(source: R, columns: &DelimitedColumns) -> Result<Self> {
        let mut records = Records::new(
            source,
            columns.delimiter,
            columns.quotes,
            columns.row_bytes_max,
        );
        let first = records.read().map_err(|error| Error::io("read", error))?;
        if first == Read::TooLong {
            return Err(Error::invalid(format!(
                "line {}: the first row is too long (--row-max)",
                records.line()
            )));
        }
        if first == Read::OpenQuote {
            return Err(Error::invalid(format!(
                "line {}: {OPEN_QUOTE}",
                records.line()
            )));
        }
        let find = |name: &str| find_column(&records, columns.header, name);
        // An empty file has no columns to find, and no rows that could miss them.
        let (key, value, expires) = match first == Read::Record {
            false => (0, Value::Rest, None),
            true => {
                let key = columns.key.as_deref().map_or(Ok(0), find)?;
                let expires = columns.expires.as_deref().map(find).transpose()?;
                let mut others = rest_of(records.len(), key, expires);
                let value = match (columns.value.as_deref(), others.next(), others.next()) {
                    (Some(name), ..) => Value::Column(find(name)?),
                    (None, Some(only), None) => Value::Column(only),
                    _ => Value::Rest,
                };
                (key, value, expires)
            }
        };
        Ok(Self {
            columns: records.len(),
            records,
            delimiter: columns.delimiter,
            encodings: columns.encodings,
            key,
            value,
            expires,
            pending: (!columns.header).then_some(first),
        })
    }

    /// Whether values are rows, not fields: then no value encoding can apply.
    pub fn value_is_rest_of_row(&self) -> bool {
        self.columns > 0 && matches!(self.value, Value::Rest)
    }

    fn fill(&self, pair: &mut Pair) -> Result<(), String> {
        if self.records.len() != self.columns {
            return Err(format!(
                "{} fields where the first row has {}",
                self.records.len(),
                self.columns
            ));
        }
        let field = |index| self.records.field(index).unwrap_or_default();
        let encodings = self.encodings;
        encodings
            .keys
            .decode_into(field(self.key), &mut pair.key)
            .map_err(|reason| format!("the key is {reason}"))?;
        pair.expires_ms = match self.expires.map(field) {
            None | Some([]) => None,
            Some(written) => Some(parse_expiry(&String::from_utf8_lossy(written))?),
        };
        match self.value {
            Value::Column(column) => encodings
                .values
                .decode_into(field(column), &mut pair.value)
                .map_err(|reason| format!("the value is {reason}")),
            Value::Rest => {
                let rest = rest_of(self.columns, self.key, self.expires);
                for (at, column) in rest.enumerate() {
                    if at > 0 {
                        pair.value.push(self.delimiter);
                    }
                    push_field(field(column), self.delimiter, &mut pair.value);
                }
                Ok(())
            }
        }
    }
}

impl<R: BufRead> PairReader for DelimitedReader<R> {
    fn next(&mut self, pair: &mut Pair) -> io::Result<Step> {
        pair.clear();
        let read = match self.pending.take() {
            Some(read) => read,
            None => self.records.read()?,
        };
        pair.line = self.records.line();
        Ok(match read {
            Read::End => Step::End,
            Read::TooLong => {
                Step::Bad("the row is too long: a quote that is never closed? (--row-max)".into())
            }
            Read::OpenQuote => Step::Bad(OPEN_QUOTE.into()),
            Read::Record => match self.fill(pair) {
                Ok(()) => Step::Pair,
                Err(reason) => Step::Bad(reason),
            },
        })
    }
}

/// The columns that are neither of key nor of expiry.
fn rest_of(columns: usize, key: usize, expires: Option<usize>) -> impl Iterator<Item = usize> {
    (0..columns).filter(move |column| *column != key && Some(*column) != expires)
}

/// The column that `name` means: one of that name, else the one of that 1-based number.
fn find_column<R: BufRead>(first: &Records<R>, header: bool, name: &str) -> Result<usize> {
    let mut columns = 0..first.len();
    if header && let Some(named) = columns.find(|&i| first.field(i) == Some(name.as_bytes())) {
        return Ok(named);
    }
    match name.parse::<usize>() {
        Ok(number) if (1..=first.len()).contains(&number) => Ok(number - 1),
        Ok(number) => Err(Error::invalid(format!(
            "there is no column {number}: the first row has {}",
            first.len()
        ))),
        Err(_) if header => Err(Error::invalid(format!(
            "the first row names no column `{name}`"
        ))),
        Err(_) => Err(Error::invalid(format!(
            "column `{name}` cannot be found without a row of names: give its number"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::Encoding;

    fn columns(header: bool, key: Option<&str>, value: Option<&str>) -> DelimitedColumns {
        DelimitedColumns {
            delimiter: b',',
            quotes: true,
            header,
            key: key.map(str::to_owned),
            value: value.map(str::to_owned),
            expires: None,
            encodings: Encodings {
                keys: Encoding::Text,
                values: Encoding::Text,
            },
            row_bytes_max: 1 << 20,
        }
    }

    /// `key=value` of each pair, `line: reason` of each bad row.
    fn rows(text: &str, columns: &DelimitedColumns) -> Result<Vec<String>> {
        let mut reader = DelimitedReader::new(text.as_bytes(), columns)?;
        let mut pair = Pair::default();
        let mut rows = Vec::new();
        loop {
            match reader.next(&mut pair).unwrap() {
                Step::End => return Ok(rows),
                Step::Pair => rows.push(pair.shown()),
                Step::Bad(reason) => rows.push(format!("{}: {reason}", pair.line)),
            }
        }
    }

    const CITIES: &str = "id,name,note\n7,\"Paris, TX\",\"a \"\"b\"\"\"\n8,Bonn,\n";

    #[test]
    fn columns_are_found_by_name_or_number() {
        for (key, value) in [("id", "name"), ("1", "2"), ("id", "2")] {
            let rows = rows(CITIES, &columns(true, Some(key), Some(value))).unwrap();
            assert_eq!(rows, ["7=Paris, TX", "8=Bonn"]);
        }
        let named = rows("b,2,1\nx,y,z\n", &columns(true, Some("2"), Some("1"))).unwrap();
        assert_eq!(named, ["y=z"], "a name goes before a number");
    }

    #[test]
    fn the_rest_of_the_row_stays_a_row() {
        let by_id = rows(CITIES, &columns(true, None, None)).unwrap();
        assert_eq!(by_id, ["7=\"Paris, TX\",\"a \"\"b\"\"\"", "8=Bonn,"]);
        let by_name = rows(CITIES, &columns(true, Some("name"), None)).unwrap();
        assert_eq!(by_name, ["Paris, TX=7,\"a \"\"b\"\"\"", "Bonn=8,"]);
    }

    #[test]
    fn of_two_columns_the_other_is_the_value() {
        let text = "k,\"v,w\"\nl,m\n";
        let first = rows(text, &columns(false, None, None)).unwrap();
        assert_eq!(first, ["k=v,w", "l=m"]);
        let second = rows(text, &columns(false, Some("2"), None)).unwrap();
        assert_eq!(second, ["v,w=k", "m=l"]);
    }

    #[test]
    fn a_named_column_is_the_expiry_and_no_part_of_the_value() {
        let expiring = |header, value| DelimitedColumns {
            expires: Some(if header { "until" } else { "2" }.to_owned()),
            ..columns(header, None, value)
        };
        let text = "k,until,v\na,1700000000000,x\nb,,y\n";
        let of_three = rows(text, &expiring(true, None)).unwrap();
        assert_eq!(of_three, ["a=x until 1700000000000", "b=y"]);
        assert_eq!(rows(text, &expiring(true, Some("v"))).unwrap(), of_three);
        let of_four = rows("a,7,x,y\nb,,,z\n", &expiring(false, None)).unwrap();
        assert_eq!(of_four, ["a=x,y until 7", "b=,z"]);
        let of_two = rows("a,7\nb, 7\n", &expiring(false, None)).unwrap();
        assert_eq!(of_two[0], "a= until 7");
        assert!(
            of_two[1].starts_with("2: the expiry is no number"),
            "{of_two:?}"
        );
        assert!(rows(CITIES, &expiring(true, None)).is_err());
    }

    #[test]
    fn a_single_column_gives_keys_with_empty_values() {
        assert_eq!(
            rows("a\nb", &columns(false, None, None)).unwrap(),
            ["a=", "b="]
        );
    }

    #[test]
    fn a_row_of_another_width_is_bad_and_the_next_is_read() {
        let rows = rows("a,b\r\nc\r\nd,e,f\r\ng,h", &columns(false, None, None)).unwrap();
        assert_eq!(
            rows,
            [
                "a=b",
                "2: 1 fields where the first row has 2",
                "3: 3 fields where the first row has 2",
                "g=h"
            ]
        );
    }

    #[test]
    fn a_column_that_is_not_there_is_refused_before_any_row() {
        for (header, key) in [(true, "nope"), (true, "4"), (true, "0"), (false, "id")] {
            assert!(
                rows(CITIES, &columns(header, Some(key), None)).is_err(),
                "{key}"
            );
        }
    }

    #[test]
    fn an_empty_file_has_no_rows() {
        for header in [true, false] {
            let rows = rows("", &columns(header, Some("id"), Some("x"))).unwrap();
            assert!(rows.is_empty());
        }
        assert!(
            rows("id,name\n", &columns(true, None, None))
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn text_fields_are_taken_byte_for_byte() {
        let rows = rows("k,C:\\x64\\new\n", &columns(false, None, None)).unwrap();
        assert_eq!(rows, ["k=C:\\x64\\new"]);
    }

    #[test]
    fn a_quote_that_is_never_closed_is_named_with_the_line_where_its_row_begins() {
        let told = rows("a,b\nc,\"d\ne,f\n", &columns(false, None, None)).unwrap();
        assert_eq!(told[0], "a=b");
        assert!(told[1].starts_with("2: a quote that opens"), "{told:?}");
        let first = rows("\"a,b\n", &columns(true, None, None)).unwrap_err();
        assert!(first.to_string().contains("quote"), "{first}");
        let closed = rows("a,\"b\"", &columns(false, None, None)).unwrap();
        assert_eq!(closed, ["a=b"], "the file may end right behind a quote");
    }

    #[test]
    fn fields_are_decoded_and_failures_name_the_field() {
        let mut hex = columns(false, None, None);
        hex.encodings.values = Encoding::Hex;
        hex.encodings.keys = Encoding::Escapes;
        let rows = rows("\\x41,6a\nb,6\n", &hex).unwrap();
        assert_eq!(rows[0], "A=j");
        assert!(
            rows[1].starts_with("2: the value is not hex"),
            "{}",
            rows[1]
        );
    }
}
