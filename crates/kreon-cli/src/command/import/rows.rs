//! The good rows of a file.

use std::path::Path;
use std::time::SystemTime;

use kreon::{Error, KEY_BYTES_MAX, VALUE_BYTES_MAX};

use crate::failure::Result;
use crate::interrupt::Interrupt;
use crate::lifetime::moment_of_ms;
use crate::rows::{Pair, PairReader, Step};

/// Reads rows; passes over bad ones, or ends with the first.
pub struct Rows<'a> {
    file: &'a Path,
    reader: Box<dyn PairReader>,
    interrupt: &'a Interrupt,
    pair: Pair,
    /// Bad rows are passed over.
    pub skip_bad: bool,
    /// The first so many rows are passed over.
    pub skip_rows: u64,
    /// Rows so far, those that were passed over too.
    pub read: u64,
    /// Good rows that had expired, and were left out.
    pub expired: u64,
    skipped: Skipped,
}

impl<'a> Rows<'a> {
    pub fn new(file: &'a Path, reader: Box<dyn PairReader>, interrupt: &'a Interrupt) -> Self {
        Self {
            file,
            reader,
            interrupt,
            pair: Pair::default(),
            skip_bad: false,
            skip_rows: 0,
            read: 0,
            expired: 0,
            skipped: Skipped::default(),
        }
    }

    /// The next pair that has not expired; none at the end.
    pub fn next(&mut self) -> Result<Option<&Pair>> {
        loop {
            self.interrupt.check()?;
            let step = match self.reader.next(&mut self.pair) {
                Ok(step) => step,
                Err(error) => {
                    // A read that waited ends with a signal, too.
                    self.interrupt.check()?;
                    return Err(Error::io(format!("read {}", self.file.display()), error).into());
                }
            };
            if step != Step::End {
                self.read += 1;
                if self.read <= self.skip_rows {
                    continue;
                }
            }
            let reason = match step {
                Step::End => return Ok(None),
                Step::Bad(reason) => reason,
                Step::Pair => match over_limit(&self.pair) {
                    Some(reason) => reason,
                    None if has_expired(&self.pair) => {
                        self.expired += 1;
                        continue;
                    }
                    None => break,
                },
            };
            if !self.skip_bad {
                return Err(bad_row(self.file, self.pair.line, &reason).into());
            }
            self.skipped.add(self.pair.line, reason);
        }
        Ok(Some(&self.pair))
    }

    /// What is told of rows that are not in the store.
    pub fn left_out(&self) -> String {
        let expired = match self.expired {
            0 => String::new(),
            rows => format!("; {rows} rows left out that have expired"),
        };
        expired + &self.skipped.summary()
    }
}

fn has_expired(pair: &Pair) -> bool {
    let moment = pair.expires_ms.map(moment_of_ms);
    moment.is_some_and(|moment| moment <= SystemTime::now())
}

fn bad_row(file: &Path, line: u64, reason: &str) -> Error {
    Error::invalid(format!(
        "{} line {line}: {reason}; the rows before it are in the store; correct it, or pass over such rows with --skip-bad",
        file.display()
    ))
}

/// Why the store could not hold the pair.
fn over_limit(pair: &Pair) -> Option<String> {
    let over = |what, len_bytes: usize, max: usize| {
        (len_bytes > max).then(|| format!("the {what} has {len_bytes} bytes, more than {max}"))
    };
    over("key", pair.key.len(), KEY_BYTES_MAX)
        .or_else(|| over("value", pair.value.len(), VALUE_BYTES_MAX))
}

/// Bad rows that were passed over: how many, and the first as an example.
#[derive(Default)]
struct Skipped {
    rows: u64,
    first: String,
}

impl Skipped {
    fn add(&mut self, line: u64, reason: String) {
        if self.rows == 0 {
            self.first = format!("line {line}: {reason}");
        }
        self.rows += 1;
    }

    fn summary(&self) -> String {
        match self.rows {
            0 => String::new(),
            rows => format!("; {rows} bad rows skipped, the first on {}", self.first),
        }
    }
}
