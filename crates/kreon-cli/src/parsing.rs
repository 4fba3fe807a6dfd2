//! What reads bytes that a user or a file gives, for tests from outside. No stable interface.

pub use crate::encoding::{Controls, Encoding};
pub use crate::rows::{
    DelimitedColumns, DelimitedReader, Encodings, JsonLinesReader, Pair, PairReader, Step,
    push_field,
};
pub use crate::size::parse_size;
