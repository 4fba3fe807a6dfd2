//! The one shape that every reader of rows delivers.

use std::io;

use crate::encoding::Encoding;

/// A pair, in memory that is used again for the next.
#[derive(Clone, Debug, Default)]
pub struct Pair {
    /// Line of the input on which the row starts; the first is 1.
    pub line: u64,
    /// Its key, decoded.
    pub key: Vec<u8>,
    /// Its value, decoded.
    pub value: Vec<u8>,
    /// When it expires, in milliseconds since 1970; none: it stays.
    pub expires_ms: Option<u64>,
}

impl Pair {
    /// Forgets the row, keeps the memory.
    pub fn clear(&mut self) {
        self.key.clear();
        self.value.clear();
        self.expires_ms = None;
    }

    /// As tests compare it.
    #[cfg(test)]
    pub fn shown(&self) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let until = self.expires_ms.map(|ms| format!(" until {ms}"));
        let until = until.unwrap_or_default();
        format!("{}={}{until}", text(&self.key), text(&self.value))
    }
}

/// The expiry that a field says: a whole number of milliseconds since 1970.
pub fn parse_expiry(written: &str) -> Result<u64, String> {
    written
        .parse()
        .map_err(|_| "the expiry is no number of milliseconds since 1970".to_owned())
}

/// What came next in the input. `Pair::line` is set for a pair and for a bad row.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// A pair was read.
    Pair,
    /// A row that is no pair, and why. The reader can go on with the next row.
    Bad(String),
    /// There are no more rows.
    End,
}

/// Reads pairs row by row.
pub trait PairReader {
    /// Reads the next row into `pair`.
    fn next(&mut self, pair: &mut Pair) -> io::Result<Step>;
}

/// How the fields of a file are written.
#[derive(Clone, Copy, Debug)]
pub struct Encodings {
    /// Of keys.
    pub keys: Encoding,
    /// Of values.
    pub values: Encoding,
}
