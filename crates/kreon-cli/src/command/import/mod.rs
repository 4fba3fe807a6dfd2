//! `kreon import`: load the rows of a file as pairs.

mod input;
mod load;
mod pipe;
mod reading;
mod rows;
mod sample;
mod sorted;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use indicatif::HumanBytes;

use crate::failure::{Code, Failure, Result};
use crate::session::Session;
use crate::sink::Sink;
use input::Input;
use load::Load;
pub use reading::Reading;
use rows::Rows;
pub use sample::quantiles;

const ABOUT_VALUES: &str = "\
CSV and TSV: the key is the first column unless --key says otherwise. Without --value, the value is \
the other column of two, and of more columns all but the key, as a row of the same format.

Fields are taken byte for byte once their quotes are resolved; \\xNN is decoded only with --escapes.

JSON lines: without --key and --value, lines are {\"key\":..,\"value\":..} as `kreon export` writes \
them. With --key alone, the value is the whole object as given. Strings are decoded by --encoding; \
other JSON is taken as it is written. `lines` are what `kreon scan` prints.

A field `expires` of such lines, or what --expires names, says when a pair expires: a whole number of \
milliseconds since 1970; null, empty or no field at all for a pair that lives as long as its region says. A pair \
that has expired by now is left out and counted; a value of its key that is there stays.

Of equal keys the last row wins. If a row is bad, the rows before it are in the store.

Rows whose keys ascend are loaded at once, without going through memory: they are in the store all \
together when the last of them is read, or none of them. From the first row on that is out of order, \
rows are put in batches. So is everything from the first row on that expires.

SIGINT (Ctrl-C) and SIGTERM end the import after the row that is read: it tells how many rows are in the \
store, all of them durable, and how to go on. Of rows that are being loaded at once none are. A second \
signal ends it without that.";

/// Load the rows of a CSV, TSV or JSON lines file as pairs
#[derive(Debug, Args)]
#[command(after_help = ABOUT_VALUES)]
pub struct Import {
    /// The file; `-` is standard input
    file: PathBuf,
    /// Rows that are written together, all or none, if they do not come sorted
    #[arg(long, value_name = "ROWS", default_value = "1000")]
    batch: NonZeroUsize,
    /// Pass over the first rows, which an interrupted import has stored
    #[arg(
        long,
        value_name = "ROWS",
        default_value_t = 0,
        hide_default_value = true
    )]
    skip_rows: u64,
    #[command(flatten)]
    reading: Reading,
    /// Make the store also over a file or block device that is not empty and holds no store: what is in it is lost
    #[arg(long)]
    pub format_store: bool,
    /// No progress and no summary
    #[arg(short, long)]
    quiet: bool,
}

impl Import {
    pub fn run(&self, session: &Session, out: &mut Sink) -> Result<()> {
        let format = self.reading.format(&self.file)?;
        let started = Instant::now();
        let input = Input::open(&self.file, self.quiet, &session.interrupt)?;
        let name = self.file.display();
        let encodings = [session.key_encoding, session.value_encoding];
        let reader = self
            .reading
            .reader(input.source, format, encodings)
            .map_err(|error| error.within(&name))?;
        let mut load = Load::new(session, self.batch.get())?;
        let mut rows = Rows::new(&self.file, reader, &session.interrupt);
        (rows.skip_bad, rows.skip_rows) = (self.reading.skip_bad, self.skip_rows);
        let loaded = sorted::load_head(&mut rows, &mut load).and_then(|()| {
            while let Some(pair) = rows.next()? {
                load.put(pair)?;
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
            rows.left_out(),
        ))?)
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
