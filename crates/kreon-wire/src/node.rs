//! What all nodes of the coordinator have in common: a preamble with a checksum.

use kreon_base::Checksum;

use crate::fields::Fields;
use crate::limits::{NODE_BYTES_MAX, NODE_VERSION};
use crate::violation::Violation;

/// Bytes in front of the fields.
pub(crate) const PREAMBLE_BYTES: usize = 12;

/// Which node it is: the first bytes of its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum NodeKind {
    /// `groups/G`.
    Group,
    /// `servers/ID`.
    Server,
    /// `tables/T`.
    Table,
    /// `format`.
    Format,
    /// `servers/ID/limits`.
    Limits,
}

impl NodeKind {
    const fn magic(self) -> [u8; 4] {
        match self {
            Self::Group => *b"KrnG",
            Self::Server => *b"KrnS",
            Self::Table => *b"KrnT",
            Self::Format => *b"KrnF",
            Self::Limits => *b"KrnL",
        }
    }

    /// The start of a node: the preamble without its checksum.
    pub(crate) fn begin(self) -> Vec<u8> {
        let mut bytes = vec![0; PREAMBLE_BYTES];
        bytes[..4].copy_from_slice(&self.magic());
        bytes[4] = NODE_VERSION;
        bytes
    }

    /// The fields of a node, all of whose bytes verify.
    pub(crate) fn open(self, bytes: &[u8]) -> Result<Fields<'_>, Violation> {
        if bytes.len() > NODE_BYTES_MAX as usize {
            return Err(Violation::TooLong);
        }
        let preamble: &[u8; PREAMBLE_BYTES] = bytes.first_chunk().ok_or(Violation::Short)?;
        if preamble[..4] != self.magic() {
            return Err(Violation::Magic);
        }
        if preamble[4] != NODE_VERSION {
            return Err(Violation::Version);
        }
        if preamble[5..8] != [0; 3] {
            return Err(Violation::ReservedBits);
        }
        if preamble[8..] != checksum(bytes).to_le_bytes() {
            return Err(Violation::Checksum);
        }
        Ok(Fields::of(&bytes[PREAMBLE_BYTES..]))
    }
}

/// Puts the checksum in.
pub(crate) fn seal(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = checksum(&bytes);
    bytes[8..PREAMBLE_BYTES].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// CRC-32C over the node with zeroes in place of the checksum. The node has its preamble.
fn checksum(bytes: &[u8]) -> u32 {
    let sum = Checksum::new().with(&bytes[..8]).with(&[0; 4]);
    sum.with(&bytes[PREAMBLE_BYTES..]).finish()
}

/// Adds a text or key of up to 65,535 bytes behind its length. A longer one is cut, and what is decoded is then refused or
/// shorter: encoders check before.
pub(crate) fn put_sized(to: &mut Vec<u8>, bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(usize::from(u16::MAX))];
    to.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
    to.extend_from_slice(bytes);
}

/// A length of up to `most`, and the bytes behind it.
pub(crate) fn sized<'a>(fields: &mut Fields<'a>, most: usize) -> Result<&'a [u8], Violation> {
    let count = usize::from(fields.u16()?);
    match count <= most {
        true => fields.bytes(count),
        false => Err(Violation::Count),
    }
}

/// A length of up to `most`, and UTF-8 without control characters behind it.
pub(crate) fn sized_text<'a>(fields: &mut Fields<'a>, most: usize) -> Result<&'a str, Violation> {
    let count = usize::from(fields.u16()?);
    match count <= most {
        true => fields.text(count),
        false => Err(Violation::Count),
    }
}

/// Room for `count` entries of at least `entry_bytes` each: `Count` if so many cannot follow.
pub(crate) fn room_for<T>(
    fields: &Fields<'_>,
    count: usize,
    entry_bytes: usize,
) -> Result<Vec<T>, Violation> {
    match count.checked_mul(entry_bytes) {
        Some(bytes) if bytes <= fields.left() => Ok(Vec::with_capacity(count)),
        _ => Err(Violation::Count),
    }
}
