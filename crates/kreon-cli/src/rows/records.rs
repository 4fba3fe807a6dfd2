//! Records of a CSV or TSV file as fields: quotes resolved, no meaning given to them yet.
//!
//! Over `csv-core` and not `csv`, because a quote that is never closed makes one record of the rest of
//! the file: here a record longer than the limit is passed over without being held in memory. Line
//! numbers are counted here too: those of `csv` are off after `\r\n` and empty lines.

use std::io::{self, BufRead};

use csv_core::ReadRecordResult;

/// Reads records and keeps the fields of the last one.
pub struct Records<R> {
    source: R,
    parser: csv_core::Reader,
    record_bytes_max: usize,
    /// Fields of the record one after the other; `ends` says where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    fields: usize,
    /// The input ended within a quote, and that was told: nothing comes behind it.
    open_quote_was_told: bool,
    /// Line ends that were passed.
    lines_passed: u64,
    /// Line on which the last record starts; the first is 1.
    line: u64,
}

/// What was read.
#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    Record,
    /// A record over the limit; it was passed over.
    TooLong,
    /// The input ends within a quote that opens in this record.
    OpenQuote,
    End,
}

impl<R: BufRead> Records<R> {
    /// Fields of a record and their bookkeeping stay within `record_bytes_max`.
    pub fn new(source: R, delimiter: u8, quotes: bool, record_bytes_max: usize) -> Self {
        Self {
            source,
            parser: csv_core::ReaderBuilder::new()
                .delimiter(delimiter)
                .quoting(quotes)
                .build(),
            record_bytes_max,
            bytes: vec![0; 1024],
            ends: vec![0; 32],
            fields: 0,
            open_quote_was_told: false,
            lines_passed: 0,
            line: 0,
        }
    }

    pub fn line(&self) -> u64 {
        self.line
    }

    /// Number of fields of the last record.
    pub fn len(&self) -> usize {
        self.fields
    }

    /// A field of the last record, the first being 0.
    pub fn field(&self, index: usize) -> Option<&[u8]> {
        let ends = self.ends.get(..self.fields)?;
        let start = match index.checked_sub(1) {
            Some(before) => *ends.get(before)?,
            None => 0,
        };
        self.bytes.get(start..*ends.get(index)?)
    }

    /// Reads the next record. Empty lines are no records.
    pub fn read(&mut self) -> io::Result<Read> {
        self.fields = 0;
        self.skip_line_ends()?;
        self.line = self.lines_passed + 1;
        let mut used_bytes = 0;
        let mut too_long = false;
        // At the end of the input the parser is given a line end: within a quote it takes it for text.
        let mut end_was_given = false;
        loop {
            if self.open_quote_was_told {
                return Ok(Read::End);
            }
            let read = self.source.fill_buf()?;
            let gives_end = read.is_empty() && !end_was_given;
            let input = if gives_end { b"\n" } else { read };
            let (bytes, ends) = (&mut self.bytes[used_bytes..], &mut self.ends[self.fields..]);
            let (result, taken, written, ended) = self.parser.read_record(input, bytes, ends);
            if gives_end {
                end_was_given = taken > 0;
                if written > 0 {
                    (self.open_quote_was_told, self.fields) = (true, 0);
                    return Ok(Read::OpenQuote);
                }
            } else {
                self.lines_passed += count_line_ends(&input[..taken]);
                self.source.consume(taken);
            }
            used_bytes += written;
            self.fields += ended;
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::Record if too_long => {
                    self.fields = 0;
                    return Ok(Read::TooLong);
                }
                ReadRecordResult::Record => return Ok(Read::Record),
                ReadRecordResult::End => return Ok(Read::End),
                ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => {
                    too_long |= !self.grow(result);
                    if too_long {
                        // The parser goes on to the record's end over memory that it may overwrite.
                        (used_bytes, self.fields) = (0, 0);
                    }
                }
            }
        }
    }

    /// Doubles what was full; false if that would pass the limit.
    fn grow(&mut self, full: ReadRecordResult) -> bool {
        let (mut bytes, mut ends) = (self.bytes.len(), self.ends.len());
        match full {
            ReadRecordResult::OutputFull => bytes *= 2,
            _ => ends *= 2,
        }
        let within = bytes / 2 + ends * size_of::<usize>() / 2 <= self.record_bytes_max;
        if within {
            self.bytes.resize(bytes, 0);
            self.ends.resize(ends, 0);
        }
        within
    }

    fn skip_line_ends(&mut self) -> io::Result<()> {
        loop {
            let input = self.source.fill_buf()?;
            let ends = input
                .iter()
                .take_while(|byte| matches!(byte, b'\r' | b'\n'))
                .count();
            let more = ends == input.len() && ends > 0;
            self.lines_passed += count_line_ends(&input[..ends]);
            self.source.consume(ends);
            if !more {
                return Ok(());
            }
        }
    }
}

fn count_line_ends(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    /// All records with their lines, read through windows of `window_bytes`.
    fn records(text: &str, window_bytes: usize, max: usize) -> Vec<(u64, Option<Vec<String>>)> {
        let source = BufReader::with_capacity(window_bytes, text.as_bytes());
        let mut records = Records::new(source, b',', true, max);
        let mut all = Vec::new();
        loop {
            let fields = match records.read().unwrap() {
                Read::End => return all,
                Read::TooLong | Read::OpenQuote => None,
                Read::Record => Some(
                    (0..records.len())
                        .map(|i| String::from_utf8(records.field(i).unwrap().to_vec()).unwrap())
                        .collect(),
                ),
            };
            all.push((records.line(), fields));
        }
    }

    fn check(text: &str, expected: &[(u64, &[&str])]) {
        let expected: Vec<_> = expected
            .iter()
            .map(|(line, fields)| (*line, Some(fields.iter().map(|f| f.to_string()).collect())))
            .collect();
        for window_bytes in [4, 7, 4096] {
            assert_eq!(records(text, window_bytes, 1 << 20), expected, "{text:?}");
        }
    }

    #[test]
    fn quotes_line_ends_and_unicode_are_resolved_with_right_line_numbers() {
        check(
            "a,b\r\n\r\nc,\"d\r\ne\"\r\n\"f\"\"g\",\"\"\r\n",
            &[(1, &["a", "b"]), (3, &["c", "d\r\ne"]), (5, &["f\"g", ""])],
        );
        check(
            "\n\na,b\n\n\nc\n,\n",
            &[(3, &["a", "b"]), (6, &["c"]), (7, &["", ""])],
        );
        check("грузия,\"東京,é\"", &[(1, &["грузия", "東京,é"])]);
        check("a\rb\rc", &[(1, &["a"]), (1, &["b"]), (1, &["c"])]);
        check("\u{feff}a,b\n", &[(1, &["a", "b"])]);
        check("", &[]);
        check("\r\n\n", &[]);
    }

    #[test]
    fn a_record_over_the_limit_is_passed_over_and_the_next_is_whole() {
        let long = "x".repeat(100_000);
        let text = format!("a,b\n\"{long}\n{long}\",1\nc,d\n");
        let all = records(&text, 4096, 64 << 10);
        let fields = |a: &str, b: &str| Some(vec![a.to_owned(), b.to_owned()]);
        assert_eq!(
            all,
            [(1, fields("a", "b")), (2, None), (4, fields("c", "d"))]
        );
        let held = records(&text, 4096, 1 << 20);
        assert_eq!(held[1].1.as_ref().unwrap()[0].len(), 200_001);
    }

    #[test]
    fn a_record_of_too_many_fields_is_passed_over() {
        let text = format!("{}\nc,d\n", ",".repeat(100_000));
        let all = records(&text, 4096, 64 << 10);
        assert_eq!(all[0], (1, None));
        assert_eq!(all[1].0, 2);
    }
}
