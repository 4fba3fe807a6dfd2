//! The file formats.

use std::path::Path;

use clap::ValueEnum;

use crate::encoding::Encoding;

/// A file format of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Fields between commas, quoted where needed (RFC 4180)
    Csv,
    /// The same between tabs
    Tsv,
    /// One JSON object a line
    Jsonl,
    /// As `kreon scan` prints them: key, tab, value; no quotes, but escapes
    Lines,
}

impl Format {
    /// The format that the ending of a file name stands for.
    pub fn of_ending(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        match ending.as_str() {
            "csv" => Some(Self::Csv),
            "tsv" | "tab" => Some(Self::Tsv),
            "jsonl" | "ndjson" | "jsonlines" | "json" => Some(Self::Jsonl),
            _ => None,
        }
    }

    /// The byte between fields; none for JSON lines.
    pub fn delimiter(self) -> Option<u8> {
        match self {
            Self::Csv => Some(b','),
            Self::Tsv | Self::Lines => Some(b'\t'),
            Self::Jsonl => None,
        }
    }

    /// The encoding in such a file of what is said to be in `encoding`.
    pub fn encoding(self, encoding: Encoding) -> Encoding {
        match self {
            Self::Lines => encoding.in_lists(),
            _ => encoding,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_tells_the_format() {
        for (name, format) in [
            ("a.csv", Some(Format::Csv)),
            ("a.b/c.TSV", Some(Format::Tsv)),
            ("x.jsonl", Some(Format::Jsonl)),
            ("x.ndjson", Some(Format::Jsonl)),
            ("x.csv.gz", None),
            ("csv", None),
            ("-", None),
        ] {
            assert_eq!(Format::of_ending(Path::new(name)), format, "{name}");
        }
    }
}
