//! How the rows of a file are read: what `import` and the sampling of a file for a new table have in common.

use std::path::Path;

use clap::Args;
use kreon::{Error, Result as StoreResult};

use super::input::Source;
use crate::encoding::Encoding;
use crate::failure::{Failure, Result};
use crate::rows::{
    DelimitedColumns, DelimitedReader, EXPIRES, Encodings, Format, JsonLinesReader, PairReader,
};
use crate::size::parse_size;

#[derive(Debug, Args)]
#[allow(missing_docs, reason = "it would become the command's")]
pub struct Reading {
    /// Format of the file; guessed from the ending of its name if not given
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Column or JSON field of the key: a name, or a number from 1 for CSV and TSV
    #[arg(short, long, value_name = "COLUMN")]
    key: Option<String>,
    /// Column or JSON field of the value
    #[arg(long, value_name = "COLUMN")]
    value: Option<String>,
    /// Column or JSON field that says when a pair expires, in milliseconds since 1970; JSON lines as `kreon export` writes
    /// them need no name
    #[arg(long, value_name = "COLUMN")]
    expires: Option<String>,
    /// Pairs live as long as their region says, whatever the field `expires` of JSON lines says
    #[arg(long, conflicts_with = "expires")]
    no_expires: bool,
    /// The first row of CSV or TSV names the columns (so it is unless --no-header is given)
    #[arg(long, overrides_with = "no_header")]
    header: bool,
    /// The first row of CSV or TSV is a row like the others
    #[arg(long)]
    no_header: bool,
    /// Pass over bad rows and count them
    #[arg(long)]
    pub skip_bad: bool,
    /// The longest row: longer ones are bad
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = parse_size)]
    row_max: usize,
}

impl Reading {
    /// The format of `file`, named or guessed.
    pub fn format(&self, file: &Path) -> Result<Format> {
        let guessed = self.format.or_else(|| Format::of_ending(file));
        guessed.ok_or_else(|| {
            Failure::usage(format!(
                "the format cannot be guessed from the name {}: give --format csv, tsv, jsonl or lines",
                file.display()
            ))
        })
    }

    /// What reads the rows of `source`.
    pub fn reader(
        &self,
        source: Source,
        format: Format,
        [keys, values]: [Encoding; 2],
    ) -> StoreResult<Box<dyn PairReader>> {
        let encodings = Encodings {
            keys: format.encoding(keys),
            values: format.encoding(values),
        };
        let (key, value, expires) = (self.key.clone(), self.value.clone(), self.expires.clone());
        let (reader, value_is_row): (Box<dyn PairReader>, bool) = match format.delimiter() {
            Some(delimiter) => {
                let is_lines = format == Format::Lines;
                let columns = DelimitedColumns {
                    delimiter,
                    quotes: !is_lines,
                    header: !self.no_header && !is_lines,
                    key,
                    value,
                    expires,
                    encodings,
                    row_bytes_max: self.row_max,
                };
                let reader = DelimitedReader::new(source, &columns)?;
                let value_is_row = reader.value_is_rest_of_row();
                (Box::new(reader), value_is_row)
            }
            None => {
                let as_exported = key.is_none() && value.is_none() && !self.no_expires;
                let expires = expires.or(as_exported.then(|| EXPIRES.to_owned()));
                let row_max = self.row_max;
                let reader = JsonLinesReader::new(source, key, value, expires, encodings, row_max);
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
