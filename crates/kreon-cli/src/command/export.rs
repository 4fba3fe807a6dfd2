//! `kreon export`: write all pairs of a region to a file that `kreon import` reads back.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use indicatif::HumanBytes;
use kreon::{Error, Result};

use crate::encoding::{Controls, PIECE_BYTES};
use crate::failure::tell;
use crate::rows::{Format, push_field, push_quoted};
use crate::session::Session;
use crate::sink::Sink;

const ABOUT_BYTES: &str = "\
`kreon import` with the same --encoding (and the same --no-header) reads the file back to the same \
pairs, whatever bytes they hold: text writes bytes that are not UTF-8 as \\xNN, hex and base64 write \
everything in their digits.";

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
                return Err(Error::invalid(
                    "the format cannot be guessed: give --format csv, tsv or jsonl",
                ));
            }
        };
        // Before the file: a region that is not there must not empty it.
        let region = session.existing_region()?;
        let started = Instant::now();
        let mut out = Sink::create(&self.file)?;
        let mut row = PairRow::new(session, format);
        let (mut rows, mut bytes) = (0u64, 0u64);
        if !self.no_header
            && let Some(delimiter) = format.delimiter()
        {
            out.write(b"key")?;
            out.write(&[delimiter])?;
            out.line("value")?;
        }
        let (mut scan, mut key, mut value) = (region.iter(), Vec::new(), Vec::new());
        while scan.next_into(&mut key, &mut value)? {
            bytes += row.write(&key, &value, &mut out)?;
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
struct PairRow<'a> {
    session: &'a Session,
    format: Format,
    key: String,
    value: String,
    bytes: Vec<u8>,
}

impl<'a> PairRow<'a> {
    fn new(session: &'a Session, format: Format) -> Self {
        Self {
            session,
            format,
            key: String::new(),
            value: String::new(),
            bytes: Vec::new(),
        }
    }

    /// Writes a row; its length. Of a long value no more than a piece is held as text.
    fn write(&mut self, key: &[u8], value: &[u8], out: &mut Sink) -> Result<u64> {
        self.bytes.clear();
        self.key.clear();
        let (keys, values) = (self.session.key_encoding, self.session.value_encoding);
        keys.encode_into(key, Controls::Keep, &mut self.key);
        match self.format.delimiter() {
            Some(delimiter) => {
                push_field(self.key.as_bytes(), delimiter, &mut self.bytes);
                self.bytes.push(delimiter);
            }
            None => {
                self.bytes.extend_from_slice(b"{\"key\":");
                push_json(&self.key, &mut self.bytes)?;
                self.bytes.extend_from_slice(b",\"value\":");
            }
        }
        let mut written = 0;
        match (self.format.delimiter(), value.len() > PIECE_BYTES) {
            (delimiter, false) => {
                self.value.clear();
                values.encode_into(value, Controls::Keep, &mut self.value);
                match delimiter {
                    Some(delimiter) => {
                        push_field(self.value.as_bytes(), delimiter, &mut self.bytes);
                    }
                    None => push_json(&self.value, &mut self.bytes)?,
                }
            }
            (delimiter, true) => {
                self.bytes.push(b'"');
                values.encode_pieces(value, Controls::Keep, |text| {
                    match delimiter {
                        Some(_) => push_quoted(text.as_bytes(), &mut self.bytes),
                        None => push_json_within(text, &mut self.bytes)?,
                    }
                    out.write(&self.bytes)?;
                    written += self.bytes.len() as u64;
                    self.bytes.clear();
                    Ok(())
                })?;
                self.bytes.push(b'"');
            }
        }
        if self.format.delimiter().is_none() {
            self.bytes.push(b'}');
        }
        self.bytes.push(b'\n');
        out.write(&self.bytes)?;
        Ok(written + self.bytes.len() as u64)
    }
}

/// A part of a string in JSON.
fn push_json_within(text: &str, row: &mut Vec<u8>) -> Result<()> {
    let start = row.len();
    push_json(text, row)?;
    // Without the quotes around it.
    row.pop();
    row.remove(start);
    Ok(())
}

fn push_json(text: &str, row: &mut Vec<u8>) -> Result<()> {
    serde_json::to_writer(row, text).map_err(|error| Error::io("write JSON", error.into()))
}
