//! Rows of CSV, TSV and JSON lines files as pairs, read one by one: memory is bounded by the longest
//! row, and the length of a row by a limit.

mod delimited;
mod field;
mod format;
mod json_lines;
mod pair;
mod records;

pub use delimited::{DelimitedColumns, DelimitedReader};
pub use field::{push_field, push_quoted};
pub use format::Format;
pub use json_lines::{BASE64_SUFFIX, EXPIRES, JsonLinesReader};
pub use pair::{Encodings, Pair, PairReader, Step};
