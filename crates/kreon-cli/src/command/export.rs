//! `kreon export`: write all pairs of a region to a file that `kreon import` reads back.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use indicatif::HumanBytes;
use kreon::Error;

use crate::encoding::{Controls, Encoding};
use crate::failure::{Failure, Result, tell};
use crate::rows::{BASE64_SUFFIX, Format, push_field};
use crate::session::Session;
use crate::sink::Sink;

const ABOUT_BYTES: &str = "\
`kreon import` with the same --encoding (and the same --no-header) reads the file back to the same \
pairs, whatever bytes they hold. CSV and TSV hold the bytes as they are. JSON strings cannot: a key or \
value that is not UTF-8 becomes a field key_base64 or value_base64. `lines` are those of `kreon scan`. \
With --escapes text formats write such bytes as \\xNN; hex and base64 write everything in their digits.";

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
                return Err(Failure::usage(format!(
                    "the format cannot be guessed from the name {}: give --format csv, tsv, jsonl or lines",
                    self.file.display()
                )));
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
            && format != Format::Lines
        {
            out.write(b"key")?;
            out.write(&[delimiter])?;
            out.line("value")?;
        }
        let mut scan = region.iter();
        while scan
            .next_with(|key, value| row.set(key, value))?
            .transpose()?
            .is_some()
        {
            out.write(&row.bytes)?;
            rows += 1;
            bytes += row.bytes.len() as u64;
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
    /// The key or value, encoded.
    text: Vec<u8>,
    bytes: Vec<u8>,
}

impl PairRow {
    fn new(session: &Session, format: Format) -> Self {
        Self {
            format,
            keys: format.encoding(session.key_encoding),
            values: format.encoding(session.value_encoding),
            text: Vec::new(),
            bytes: Vec::new(),
        }
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> kreon::Result<()> {
        self.bytes.clear();
        let (keys, values) = (self.keys, self.values);
        match (self.format, self.format.delimiter()) {
            (Format::Lines, _) => {
                keys.encode_into(key, Controls::Escape, &mut self.bytes);
                self.bytes.push(b'\t');
                values.encode_into(value, Controls::Escape, &mut self.bytes);
            }
            (_, Some(delimiter)) => {
                self.push_field(key, keys, delimiter);
                self.bytes.push(delimiter);
                self.push_field(value, values, delimiter);
            }
            (_, None) => {
                self.bytes.push(b'{');
                self.push_json("key", key, keys)?;
                self.bytes.push(b',');
                self.push_json("value", value, values)?;
                self.bytes.push(b'}');
            }
        }
        self.bytes.push(b'\n');
        Ok(())
    }

    fn push_field(&mut self, bytes: &[u8], encoding: Encoding, delimiter: u8) {
        self.text.clear();
        encoding.encode_into(bytes, Controls::KeepLines, &mut self.text);
        push_field(&self.text, delimiter, &mut self.bytes);
    }

    /// A field of the object: `"name":"text"`, or `"name_base64":".."` for bytes that are no text.
    fn push_json(&mut self, name: &str, bytes: &[u8], encoding: Encoding) -> kreon::Result<()> {
        let is_text = encoding != Encoding::Text || str::from_utf8(bytes).is_ok();
        let (suffix, encoding) = match is_text {
            true => ("", encoding),
            false => (BASE64_SUFFIX, Encoding::Base64),
        };
        self.text.clear();
        encoding.encode_into(bytes, Controls::KeepLines, &mut self.text);
        self.bytes.push(b'"');
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.extend_from_slice(suffix.as_bytes());
        self.bytes.extend_from_slice(b"\":");
        let text = String::from_utf8_lossy(&self.text);
        serde_json::to_writer(&mut self.bytes, &text)
            .map_err(|error| Error::io("write JSON", error.into()))
    }
}
