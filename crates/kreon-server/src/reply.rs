//! Replies of commands, before they are encoded.

use std::borrow::Cow;

use bytes::Bytes;
use kreon::Value;

/// What a command answers. The encoder chooses the bytes by the protocol version of the connection; where the two differ,
/// the variant says how.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    Ok,
    /// No value: `$-1` or `_`.
    Nil,
    /// No array: `*-1` or `_`.
    NilArray,
    Int(i64),
    /// A bulk of [`double_text`] in RESP2.
    Double(f64),
    Simple(&'static str),
    Bulk(Bytes),
    /// The bytes of a record from `skip` on, without a copy before the encoding. Never fewer than `skip` bytes.
    Value {
        value: Value,
        skip: usize,
    },
    /// A bulk in RESP2, verbatim `txt` in RESP3.
    Text(String),
    Error(CommandError),
    Array(Vec<Reply>),
    /// A flat array in RESP2.
    Map(Vec<(Reply, Reply)>),
    /// Pairs in order: a flat array in RESP2, an array of arrays of two in RESP3.
    Pairs(Vec<(Reply, Reply)>),
    /// An array in RESP2.
    Set(Vec<Reply>),
    /// An array in RESP2.
    Push(Vec<Reply>),
}

impl Reply {
    /// A bulk of bytes that outlive the program, without a copy.
    pub(crate) fn constant(text: &'static str) -> Self {
        Self::Bulk(Bytes::from_static(text.as_bytes()))
    }

    /// A bulk of a copy of `bytes`.
    pub(crate) fn copied(bytes: &[u8]) -> Self {
        Self::Bulk(Bytes::copy_from_slice(bytes))
    }

    /// What an element of so many bytes takes in memory, about.
    pub(crate) const fn element_bytes(bytes: usize) -> usize {
        size_of::<Self>() + bytes
    }

    /// Bytes that it holds beside those of its own size.
    pub(crate) fn bytes(&self) -> usize {
        let element = |item: &Self| size_of::<Self>() + item.bytes();
        match self {
            Self::Bulk(bytes) => bytes.len(),
            Self::Value { value, .. } => value.len(),
            Self::Text(text) => text.len(),
            Self::Array(items) | Self::Set(items) | Self::Push(items) => {
                items.iter().map(element).sum()
            }
            Self::Map(items) | Self::Pairs(items) => {
                items.iter().map(|(a, b)| element(a) + element(b)).sum()
            }
            _ => 0,
        }
    }

    /// The bulk of a whole record.
    pub(crate) fn value(value: Value) -> Self {
        Self::Value { value, skip: 0 }
    }
}

/// The text of an error reply, its code first (`ERR`, `WRONGTYPE`), without line ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandError(pub Cow<'static, str>);

impl CommandError {
    pub(crate) const fn new(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }

    /// An error whose text is made now. Line ends, which the protocol cannot carry, become spaces.
    pub(crate) fn of(text: impl Into<String>) -> Self {
        Self(Cow::Owned(text.into().replace(['\r', '\n'], " ")))
    }
}

/// A number as Redis 7.2 prints it: the shortest digits that read back as the same number, `inf`, `-inf`, `nan`; with an
/// exponent from 1e21 on and below 1e-6.
pub(crate) fn double_text(number: f64) -> String {
    match number {
        _ if number.is_nan() => "nan".to_owned(),
        f64::INFINITY => "inf".to_owned(),
        f64::NEG_INFINITY => "-inf".to_owned(),
        _ if number == 0.0 || (1e-6..1e21).contains(&number.abs()) => format!("{number}"),
        _ => {
            let text = format!("{number:e}");
            match text.contains("e-") {
                true => text,
                false => text.replace('e', "e+"),
            }
        }
    }
}
