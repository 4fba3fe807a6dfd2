//! `kreon import`: load the rows of a file as pairs.

mod input;
mod load;
mod pipe;
mod rows;
mod sorted;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use indicatif::HumanBytes;
use kreon::Error;

use crate::encoding::Encoding;
use crate::failure::{Code, Failure, Result};
use crate::rows::{
    DelimitedColumns, DelimitedReader, Encodings, Format, JsonLinesReader, PairReader,
};
use crate::session::Session;
use crate::sink::Sink;
use crate::size::parse_size;
use input::{Input, Source};
use load::Load;
use rows::Rows;

const ABOUT_VALUES: &str = "\
CSV and TSV: the key is the first column unless --key says otherwise. Without --value, the value is \
the other column of two, and of more columns all but the key, as a row of the same format.

Fields are taken byte for byte once their quotes are resolved; \\xNN is decoded only with --escapes.

JSON lines: without --key and --value, lines are {\"key\":..,\"value\":..} as `kreon export` writes \
them. With --key alone, the value is the whole object as given. Strings are decoded by --encoding; \
other JSON is taken as it is written. `lines` are what `kreon scan` prints.

Of equal keys the last row wins. If a row is bad, the rows before it are in the store.

Rows whose keys ascend are loaded at once, without going through memory: they are in the store all \
together when the last of them is read, or none of them. From the first row on that is out of order, \
rows are put in batches.

SIGINT (Ctrl-C) and SIGTERM end the import after the row that is read: it tells how many rows are in the \
store, all of them durable, and how to go on. Of rows that are being loaded at once none are. A second \
signal ends it without that.";

/// Load the rows of a CSV, TSV or JSON lines file as pairs
#[derive(Debug, Args)]
#[command(after_help = ABOUT_VALUES)]
pub struct Import {
    /// The file; `-` is standard input
    file: PathBuf,
    /// Format of the file; guessed from the ending of its name if not given
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Column or JSON field of the key: a name, or a number from 1 for CSV and TSV
    #[arg(short, long, value_name = "COLUMN")]
    key: Option<String>,
    /// Column or JSON field of the value
    #[arg(long, value_name = "COLUMN")]
    value: Option<String>,
    /// The first row of CSV or TSV names the columns (so it is unless --no-header is given)
    #[arg(long, overrides_with = "no_header")]
    header: bool,
    /// The first row of CSV or TSV is a row like the others
    #[arg(long)]
    no_header: bool,
    /// Rows that are written together, all or none, if they do not come sorted
    #[arg(long, value_name = "ROWS", default_value = "1000")]
    batch: NonZeroUsize,
    /// Pass over bad rows and count them
    #[arg(long)]
    skip_bad: bool,
    /// Pass over the first rows, which an interrupted import has stored
    #[arg(
        long,
        value_name = "ROWS",
        default_value_t = 0,
        hide_default_value = true
    )]
    skip_rows: u64,
    /// The longest row: longer ones are bad
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = parse_size)]
    row_max: usize,
    /// Make the store also over a file or block device that is not empty and holds no store: what is in it is lost
    #[arg(long)]
    pub format_store: bool,
    /// No progress and no summary
    #[arg(short, long)]
    quiet: bool,
}

impl Import {
    pub fn run(&self, session: &Session, out: &mut Sink) -> Result<()> {
        let format = self
            .format
            .or_else(|| Format::of_ending(&self.file))
            .ok_or_else(|| {
                Failure::usage(format!(
                    "the format cannot be guessed from the name {}: give --format csv, tsv, jsonl or lines",
                    self.file.display()
                ))
            })?;
        let started = Instant::now();
        let input = Input::open(&self.file, self.quiet, &session.interrupt)?;
        let name = self.file.display();
        let reader = self
            .reader(input.source, format, session)
            .map_err(|error| error.within(&name))?;
        let mut load = Load::new(session, self.batch.get())?;
        let mut rows = Rows::new(&self.file, reader, &session.interrupt);
        (rows.skip_bad, rows.skip_rows) = (self.skip_bad, self.skip_rows);
        let loaded = sorted::load_head(&mut rows, &mut load).and_then(|()| {
            while let Some((key, value)) = rows.next()? {
                load.put(key, value)?;
            }
            Ok(())
        });
        // Also after a bad row or a signal: the rows before it go in.
        let written = load.finish();
        input.progress.finish_and_clear();
        let count = match (loaded, written) {
            (Ok(()), Ok(count)) => count,
            // The first failure tells of rows that are in the store: here they are not.
            (Err(first), Err(failed)) if first.code() == Code::Usage || first.is_interruption() => {
                return Err(failed);
            }
            (Err(stopped), Ok(count)) if stopped.is_interruption() => {
                return Err(interrupted(stopped, rows.read, count, load.is_undone));
            }
            (Err(failure), _) | (Ok(_), Err(failure)) => return Err(failure),
        };
        if self.quiet {
            return Ok(());
        }
        let seconds = started.elapsed().as_secs_f64();
        Ok(out.line(&format!(
            "imported {count} rows, {} in {seconds:.2} s ({:.0} rows/s){}{}",
            HumanBytes(input.progress.position()),
            count as f64 / seconds.max(1e-9),
            sorted::summary(load.rows_loaded, count),
            rows.skipped.summary(),
        ))?)
    }

    fn reader(
        &self,
        source: Source,
        format: Format,
        session: &Session,
    ) -> kreon::Result<Box<dyn PairReader>> {
        let encodings = Encodings {
            keys: format.encoding(session.key_encoding),
            values: format.encoding(session.value_encoding),
        };
        let (key, value) = (self.key.clone(), self.value.clone());
        let (reader, value_is_row): (Box<dyn PairReader>, bool) = match format.delimiter() {
            Some(delimiter) => {
                let is_lines = format == Format::Lines;
                let columns = DelimitedColumns {
                    delimiter,
                    quotes: !is_lines,
                    header: !self.no_header && !is_lines,
                    key,
                    value,
                    encodings,
                    row_bytes_max: self.row_max,
                };
                let reader = DelimitedReader::new(source, &columns)?;
                let value_is_row = reader.value_is_rest_of_row();
                (Box::new(reader), value_is_row)
            }
            None => {
                let reader = JsonLinesReader::new(source, key, value, encodings, self.row_max);
                let value_is_row = reader.value_is_whole_object();
                (Box::new(reader), value_is_row)
            }
        };
        if value_is_row && matches!(encodings.values, Encoding::Hex | Encoding::Base64) {
            return Err(Error::invalid(
                "a whole row as the value has no encoding: name a --value column, or add --value-encoding text",
            ));
        }
        Ok(reader)
    }
}

/// What is in the store after a signal, and how to go on.
fn interrupted(stopped: Failure, read: u64, stored: u64, is_undone: bool) -> Failure {
    if is_undone {
        return stopped.with_more(
            &format!(
                "{read} rows read, none of them stored: rows that come sorted are loaded all or nothing"
            ),
            "import the file again",
        );
    }
    stopped.with_more(
        &format!("{read} rows read, {stored} of them are in the store and durable"),
        format!("to go on, import the file again with --skip-rows {read}"),
    )
}
