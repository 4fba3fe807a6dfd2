//! `kreon export`: write all pairs of a region to a file that `kreon import` reads back.

use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use clap::Args;
use indicatif::HumanBytes;
use kreon::{Error, Result as StoreResult};

use crate::encoding::{Controls, Encoding, PIECE_BYTES};
use crate::failure::{Failure, Result, tell};
use crate::lifetime::ms_of_moment;
use crate::place::Direction;
use crate::rows::{BASE64_SUFFIX, EXPIRES, Format, push_field, push_quoted};
use crate::session::Session;
use crate::sink::Sink;

const ABOUT_BYTES: &str = "\
`kreon import` with the same --encoding (and the same --no-header) reads the file back to the same \
pairs, whatever bytes they hold. CSV and TSV hold the bytes as they are. JSON strings cannot: a key or \
value that is not UTF-8 becomes a field key_base64 or value_base64. `lines` are those of `kreon scan`. \
With --escapes text formats write such bytes as \\xNN; hex and base64 write everything in their digits.

What has expired is not written. JSON lines say of a pair that will when it does, in a field `expires`: milliseconds \
since 1970. CSV and TSV do with --expires, in a third column, which `kreon import --expires` reads.";

/// Write all pairs of the region to a file that `kreon import` reads back
#[derive(Debug, Args)]
#[command(after_help = ABOUT_BYTES)]
pub struct Export {
    /// The file, emptied if it is there; `-` is standard output
    #[arg(default_value = "-")]
    file: PathBuf,
    /// Format of the file; guessed from the ending of its name, else jsonl
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Write a third column to CSV and TSV: when a pair expires, in milliseconds since 1970, or nothing
    #[arg(long)]
    expires: bool,
    /// Write no row of names (key,value) before the pairs of CSV and TSV
    #[arg(long)]
    no_header: bool,
    /// No summary
    #[arg(short, long)]
    quiet: bool,
}

impl Export {
    pub fn run(&self, session: &Session) -> Result<()> {
        let format = match self.format.or_else(|| Format::of_ending(&self.file)) {
            Some(format) => format,
            None if self.file == Path::new("-") => Format::Jsonl,
            None => {
                return Err(Failure::usage(format!(
                    "the format cannot be guessed from the name {}: give --format csv, tsv, jsonl or lines",
                    self.file.display()
                )));
            }
        };
        if self.expires && format == Format::Lines {
            return Err(Failure::usage(
                "`lines` have no place for an expiry: --expires is for CSV and TSV",
            ));
        }
        // Before the file: a region that is not there must not empty it.
        let region = session.existing_region()?;
        let started = Instant::now();
        let mut out = Sink::create(&self.file)?;
        let mut row = PairRow::new(session, format, self.expires);
        let (mut rows, mut bytes) = (0u64, 0u64);
        if !self.no_header
            && let Some(delimiter) = format.delimiter()
            && format != Format::Lines
        {
            out.write(b"key")?;
            out.write(&[delimiter])?;
            out.write(b"value")?;
            if self.expires {
                out.write(&[delimiter])?;
                out.write(EXPIRES.as_bytes())?;
            }
            out.line("")?;
        }
        let all = (Bound::Unbounded, Bound::Unbounded);
        let (mut scan, mut key, mut value) = (
            region.scan(all, Direction::Ascending)?,
            Vec::new(),
            Vec::new(),
        );
        loop {
            let expires = scan.peek_expiry()?;
            if !scan.next_into(&mut key, &mut value)? {
                break;
            }
            bytes += row.write(&key, &value, expires, &mut out)?;
            rows += 1;
        }
        out.finish()?;
        if !self.quiet {
            let seconds = started.elapsed().as_secs_f64();
            tell(&format!(
                "exported {rows} rows, {} in {seconds:.2} s",
                HumanBytes(bytes)
            ));
        }
        Ok(())
    }
}

/// One pair as a row of the file, in memory that is used again for the next.
struct PairRow {
    format: Format,
    keys: Encoding,
    values: Encoding,
    /// Rows of CSV and TSV have a column for the expiry.
    has_expires: bool,
    /// The key or value, encoded.
    text: Vec<u8>,
    bytes: Vec<u8>,
}

impl PairRow {
    fn new(session: &Session, format: Format, has_expires: bool) -> Self {
        Self {
            format,
            keys: format.encoding(session.key_encoding),
            values: format.encoding(session.value_encoding),
            has_expires,
            text: Vec::new(),
            bytes: Vec::new(),
        }
    }

    /// Writes a row; its length. Of a long value no more than a piece is held as text.
    fn write(
        &mut self,
        key: &[u8],
        value: &[u8],
        expires: Option<SystemTime>,
        out: &mut Sink,
    ) -> StoreResult<u64> {
        let expires_ms = expires.map(|moment| ms_of_moment(moment).to_string());
        let expires_ms = expires_ms.as_deref().map(str::as_bytes);
        self.bytes.clear();
        let written = match (self.format, self.format.delimiter()) {
            (Format::Lines, _) => {
                self.keys
                    .encode_into(key, Controls::Escape, &mut self.bytes);
                self.bytes.push(b'\t');
                self.write_pieces(self.values, value, Quotes::None, out)?
            }
            (_, Some(delimiter)) => {
                self.push_field(key, self.keys, delimiter);
                self.bytes.push(delimiter);
                let written = match value.len() > PIECE_BYTES {
                    true => self.write_pieces(self.values, value, Quotes::Csv, out)?,
                    false => {
                        self.push_field(value, self.values, delimiter);
                        0
                    }
                };
                if self.has_expires {
                    self.bytes.push(delimiter);
                    self.bytes.extend_from_slice(expires_ms.unwrap_or_default());
                }
                written
            }
            (_, None) => {
                self.bytes.push(b'{');
                let key_written = self.write_json("key", key, self.keys, out)?;
                self.bytes.push(b',');
                let value_written = self.write_json("value", value, self.values, out)?;
                if let Some(ms) = expires_ms {
                    self.bytes.extend_from_slice(b",\"");
                    self.bytes.extend_from_slice(EXPIRES.as_bytes());
                    self.bytes.extend_from_slice(b"\":");
                    self.bytes.extend_from_slice(ms);
                }
                self.bytes.push(b'}');
                key_written + value_written
            }
        };
        self.bytes.push(b'\n');
        out.write(&self.bytes)?;
        Ok(written + self.bytes.len() as u64)
    }

    fn push_field(&mut self, bytes: &[u8], encoding: Encoding, delimiter: u8) {
        self.text.clear();
        encoding.encode_into(bytes, Controls::KeepLines, &mut self.text);
        push_field(&self.text, delimiter, &mut self.bytes);
    }

    /// A field of the object: `"name":"text"`, or `"name_base64":".."` for bytes that are no text.
    fn write_json(
        &mut self,
        name: &str,
        bytes: &[u8],
        encoding: Encoding,
        out: &mut Sink,
    ) -> StoreResult<u64> {
        let is_text = encoding != Encoding::Text || str::from_utf8(bytes).is_ok();
        let (suffix, encoding) = match is_text {
            true => ("", encoding),
            false => (BASE64_SUFFIX, Encoding::Base64),
        };
        self.bytes.push(b'"');
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.extend_from_slice(suffix.as_bytes());
        self.bytes.extend_from_slice(b"\":");
        self.write_pieces(encoding, bytes, Quotes::Json, out)
    }

    /// Appends `bytes` to the row, which goes out whenever a piece is in it; the length of what went out.
    fn write_pieces(
        &mut self,
        encoding: Encoding,
        bytes: &[u8],
        quotes: Quotes,
        out: &mut Sink,
    ) -> StoreResult<u64> {
        let controls = match quotes {
            Quotes::None => Controls::Escape,
            Quotes::Csv | Quotes::Json => Controls::KeepLines,
        };
        let row = &mut self.bytes;
        if quotes != Quotes::None {
            row.push(b'"');
        }
        let mut written = 0;
        encoding.encode_pieces(bytes, controls, |text| {
            match quotes {
                Quotes::None => row.extend_from_slice(text),
                Quotes::Csv => push_quoted(text, row),
                Quotes::Json => push_json_within(text, row)?,
            }
            if row.len() >= PIECE_BYTES {
                out.write(row)?;
                written += row.len() as u64;
                row.clear();
            }
            Ok::<_, Error>(())
        })?;
        if quotes != Quotes::None {
            row.push(b'"');
        }
        Ok(written)
    }
}

/// What stands around a field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    None,
    Csv,
    Json,
}

/// Appends a part of a string in JSON: whole characters of UTF-8.
fn push_json_within(text: &[u8], row: &mut Vec<u8>) -> StoreResult<()> {
    let start = row.len();
    serde_json::to_writer(&mut *row, &String::from_utf8_lossy(text))
        .map_err(|error| Error::io("write JSON", error.into()))?;
    // Without the quotes around it.
    row.pop();
    row.remove(start);
    Ok(())
}
