//! The records of a database in its region.
//!
//! | key | value |
//! |---|---|
//! | `k` key | a string: one byte 0, or 1 and its deadline; then its bytes |
//! | `c` key | the [`Head`] of a collection |
//! | `e` id rest | an element; what the rest is says the kind of the collection |
//! | `x` deadline id | key: a collection that ends then |
//!
//! A key has a record under `k` or under `c`, never under both. Strings stand apart, so that a `SET` that finds no collection by
//! the filter of the index reads nothing. Numbers are big-endian, deadlines milliseconds since 1970. Records with a deadline carry
//! it as the expiry of the store, too, which lets them vanish; what they say themselves is what `PEXPIRETIME` tells.

use kreon::{KEY_BYTES_MAX, Value};

/// First byte of the record of a string.
pub(crate) const STRING: u8 = b'k';
/// First byte of the head of a collection.
pub(crate) const COLLECTION: u8 = b'c';
/// First byte of an element.
pub(crate) const ELEMENT: u8 = b'e';
/// First byte of a record of the index of deadlines.
pub(crate) const EXPIRY: u8 = b'x';

/// Bytes of the key of an element in front of its rest.
pub(crate) const ELEMENT_PREFIX_BYTES: usize = 9;
/// Longest key of a user, member of a set and field of a hash, in bytes: the longest key of the store without what is
/// put in front, which is longest for members of sorted sets.
pub(crate) const NAME_BYTES_MAX: usize = KEY_BYTES_MAX - 32;

const IS_PLAIN: u8 = 0;
const HAS_DEADLINE: u8 = 1;
const DEADLINE_BYTES: usize = 8;

/// The type of a collection, as its head names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Hash = b'h' as isize,
    List = b'l' as isize,
    Set = b's' as isize,
    SortedSet = b'z' as isize,
}

impl Kind {
    /// As `TYPE` tells it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Hash => "hash",
            Self::List => "list",
            Self::Set => "set",
            Self::SortedSet => "zset",
        }
    }

    fn of(byte: u8) -> Option<Self> {
        Some(match byte {
            b'h' => Self::Hash,
            b'l' => Self::List,
            b's' => Self::Set,
            b'z' => Self::SortedSet,
            _ => return None,
        })
    }
}

/// The head of a collection: a record of 33 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub kind: Kind,
    /// Of its elements; no other collection ever has it.
    pub id: u64,
    /// In milliseconds since 1970; `None`: it stays.
    pub deadline_ms: Option<u64>,
    /// Index of the first element of a list; 0 for others.
    pub first: i64,
    /// Number of elements. A collection without any has no head.
    pub len: u64,
}

impl Head {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(33);
        bytes.push(self.kind as u8);
        bytes.extend_from_slice(&self.id.to_be_bytes());
        bytes.extend_from_slice(&self.deadline_ms.unwrap_or(0).to_be_bytes());
        bytes.extend_from_slice(&self.first.to_be_bytes());
        bytes.extend_from_slice(&self.len.to_be_bytes());
        bytes
    }

    /// `None`: these bytes are no head.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (&[kind], rest) = bytes.split_first_chunk::<1>()?;
        let (id, rest) = rest.split_first_chunk()?;
        let (deadline, rest) = rest.split_first_chunk()?;
        let (first, rest) = rest.split_first_chunk()?;
        let deadline_ms = u64::from_be_bytes(*deadline);
        Some(Self {
            kind: Kind::of(kind)?,
            id: u64::from_be_bytes(*id),
            deadline_ms: (deadline_ms != 0).then_some(deadline_ms),
            first: i64::from_be_bytes(*first),
            len: u64::from_be_bytes(rest.try_into().ok()?),
        })
    }
}

/// A string as it was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Text {
    record: Value,
    skip: usize,
    /// In milliseconds since 1970; `None`: it stays.
    pub deadline_ms: Option<u64>,
}

impl Text {
    /// `None`: these bytes are no record of a string.
    pub(crate) fn decode(record: Value) -> Option<Self> {
        let (&[flag], rest) = record.split_first_chunk::<1>()?;
        let (skip, deadline_ms) = match flag {
            IS_PLAIN => (1, None),
            HAS_DEADLINE => {
                let deadline = rest.first_chunk()?;
                (1 + DEADLINE_BYTES, Some(u64::from_be_bytes(*deadline)))
            }
            _ => return None,
        };
        Some(Self {
            record,
            skip,
            deadline_ms,
        })
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.record.get(self.skip..).unwrap_or_default()
    }

    /// The record, and the number of bytes in front of those of the string.
    pub(crate) fn into_parts(self) -> (Value, usize) {
        (self.record, self.skip)
    }
}

/// Appends the record of a string but for its bytes.
pub(crate) fn begin_text(record: &mut Vec<u8>, deadline_ms: Option<u64>) {
    match deadline_ms {
        None => record.push(IS_PLAIN),
        Some(deadline_ms) => {
            record.push(HAS_DEADLINE);
            record.extend_from_slice(&deadline_ms.to_be_bytes());
        }
    }
}

/// The key of a record: its kind and the rest.
pub(crate) fn record_key(kind: u8, rest: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + rest.len());
    key.push(kind);
    key.extend_from_slice(rest);
    key
}

/// The key of an element.
pub(crate) fn element_key(id: u64, rest: &[&[u8]]) -> Vec<u8> {
    let bytes = rest.iter().map(|part| part.len()).sum::<usize>();
    let mut key = Vec::with_capacity(ELEMENT_PREFIX_BYTES + bytes);
    key.push(ELEMENT);
    key.extend_from_slice(&id.to_be_bytes());
    for part in rest {
        key.extend_from_slice(part);
    }
    key
}

/// The key of a collection in the index of deadlines.
pub(crate) fn expiry_key(deadline_ms: u64, id: u64) -> Vec<u8> {
    let mut key = record_key(EXPIRY, &deadline_ms.to_be_bytes());
    key.extend_from_slice(&id.to_be_bytes());
    key
}

/// Deadline and id of a key of that index.
pub(crate) fn parse_expiry_key(key: &[u8]) -> Option<(u64, u64)> {
    let (&[EXPIRY], rest) = key.split_first_chunk::<1>()? else {
        return None;
    };
    let (deadline, id) = rest.split_first_chunk()?;
    Some((
        u64::from_be_bytes(*deadline),
        u64::from_be_bytes(id.try_into().ok()?),
    ))
}

/// The least key that is greater than all that start with `prefix`; `None` if there is none.
pub(crate) fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != u8::MAX)?;
    let mut end = prefix.get(..=last)?.to_vec();
    if let Some(byte) = end.last_mut() {
        *byte += 1;
    }
    Some(end)
}

/// Eight bytes whose order is that of the numbers; -0 counts as 0. Not for NaN.
pub(crate) fn score_bytes(score: f64) -> [u8; 8] {
    let bits = if score == 0.0 { 0 } else { score.to_bits() };
    let ordered = match bits >> 63 {
        0 => bits ^ (1 << 63),
        _ => !bits,
    };
    ordered.to_be_bytes()
}

/// The number of [`score_bytes`].
pub(crate) fn score_of(bytes: [u8; 8]) -> f64 {
    let ordered = u64::from_be_bytes(bytes);
    f64::from_bits(match ordered >> 63 {
        0 => !ordered,
        _ => ordered ^ (1 << 63),
    })
}

/// Eight bytes whose order is that of the indexes of a list.
pub(crate) fn index_bytes(index: i64) -> [u8; 8] {
    (index ^ i64::MIN).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_of_scores_is_the_order_of_their_bytes() {
        let scores = [
            f64::NEG_INFINITY,
            f64::MIN,
            -1.5,
            -1.0,
            -f64::MIN_POSITIVE,
            0.0,
            5e-324,
            1.0,
            1.5,
            f64::MAX,
            f64::INFINITY,
        ];
        for pair in scores.windows(2) {
            assert!(score_bytes(pair[0]) < score_bytes(pair[1]), "{pair:?}");
        }
        for score in scores {
            assert_eq!(score_of(score_bytes(score)), score);
        }
        assert_eq!(score_bytes(-0.0), score_bytes(0.0));
        for pair in [i64::MIN, -1, 0, 1, i64::MAX].windows(2) {
            assert!(index_bytes(pair[0]) < index_bytes(pair[1]));
        }
    }

    #[test]
    fn bytes_of_records_stay_what_they_are() {
        let head = Head {
            kind: Kind::List,
            id: 0x0102,
            deadline_ms: Some(0x0304),
            first: -1,
            len: 5,
        };
        let bytes = b"l\0\0\0\0\0\0\x01\x02\0\0\0\0\0\0\x03\x04\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0\0\0\0\x05";
        assert_eq!(head.encode(), bytes);
        assert_eq!(Head::decode(bytes), Some(head));
        assert_eq!(Head::decode(&bytes[1..]), None);

        let mut record = Vec::new();
        begin_text(&mut record, Some(258));
        record.extend_from_slice(b"text");
        assert_eq!(record, b"\x01\0\0\0\0\0\0\x01\x02text");
        let text = Text::decode(Value::from(record)).unwrap();
        assert_eq!(
            (text.bytes(), text.deadline_ms),
            (b"text".as_slice(), Some(258))
        );
        assert_eq!(
            Text::decode(Value::from(&b"\0t"[..])).unwrap().bytes(),
            b"t"
        );
        assert_eq!(Text::decode(Value::from(&b"\x01short"[..])), None);

        assert_eq!(element_key(1, &[b"m", b"ab"]), b"e\0\0\0\0\0\0\0\x01mab");
        assert_eq!(expiry_key(2, 1), b"x\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x01");
        assert_eq!(parse_expiry_key(&expiry_key(2, 1)), Some((2, 1)));
        assert_eq!(prefix_end(b"a\xff").as_deref(), Some(b"b".as_slice()));
        assert_eq!(prefix_end(b"\xff"), None);
    }
}
