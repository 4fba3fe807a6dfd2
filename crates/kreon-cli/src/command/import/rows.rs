//! The good rows of a file.

use std::path::Path;

use kreon::{Error, KEY_BYTES_MAX, VALUE_BYTES_MAX};

use crate::failure::Result;
use crate::interrupt::Interrupt;
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
    pub skipped: Skipped,
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
            skipped: Skipped::default(),
        }
    }

    /// The next key and its value; none at the end.
    pub fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
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
                    None => break,
                },
            };
            if !self.skip_bad {
                return Err(bad_row(self.file, self.pair.line, &reason).into());
            }
            self.skipped.add(self.pair.line, reason);
        }
        Ok(Some((&self.pair.key, &self.pair.value)))
    }
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
pub struct Skipped {
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

    pub fn summary(&self) -> String {
        match self.rows {
            0 => String::new(),
            rows => format!("; {rows} bad rows skipped, the first on {}", self.first),
        }
    }
}
