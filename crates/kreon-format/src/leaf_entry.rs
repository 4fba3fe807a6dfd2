//! The body of a leaf's entry: LSN, payload, length of a long key.
//!
//! LSN (8 bytes, if not 0) | log offset (6 bytes, unless inline, or erased and not long) | length of the value (1 to 4
//! bytes, unless a tombstone or erased) | length of the whole key (3 bytes, if long) | attributes (8 bytes, if the value
//! has any) | the value, if inline. The tag of the entry says which of them are present. The length of a value in the log
//! is that of all bytes behind the key there, attributes included.

use kreon_base::{
    Attributes, Error, KEY_BYTES_MAX, LogOffset, Lsn, Payload, Result, VALUE_BYTES_MAX,
};

use crate::bytes::{ByteReader, array_at, u48, u48_bytes};
use crate::node::RawEntry;
use crate::{
    INLINE_VALUE_BYTES_MAX, LOG_OFFSET_MAX, LONG_KEY_STORED_BYTES, decode_attributes,
    encode_attributes,
};

const KIND_MASK: u8 = 0x03;
const KIND_LOGGED: u8 = 0;
const KIND_INLINE: u8 = 1;
const KIND_TOMBSTONE: u8 = 2;
/// Since format 3.
const KIND_ERASED: u8 = 3;
const HAS_LSN: u8 = 0x04;
const LONG: u8 = 0x08;
/// Two bits: number of bytes of the value's length, less one.
const WIDTH_SHIFT: u8 = 4;
const WIDTH_MASK: u8 = 0x30;
/// Since format 5.
const HAS_ATTRIBUTES: u8 = 0x40;

const KEY_LENGTH_BYTES: usize = 3;

/// Largest length of a body without its inline value, in bytes.
pub(crate) const FIXED_BYTES_MAX: usize = 8 + 6 + 4 + KEY_LENGTH_BYTES + Attributes::BYTES;

/// Whether the tag is that of an entry with a long key.
pub(crate) const fn is_long(tag: u8) -> bool {
    tag & LONG != 0
}

/// Whether the tag is that of an entry with an LSN.
pub(crate) const fn has_lsn(tag: u8) -> bool {
    tag & HAS_LSN != 0
}

/// Whether the tag is that of an entry whose value has attributes.
pub(crate) const fn has_attributes(tag: u8) -> bool {
    tag & HAS_ATTRIBUTES != 0
}

/// An encoded body.
pub(crate) struct Body<'v> {
    pub(crate) tag: u8,
    fixed: [u8; FIXED_BYTES_MAX],
    fixed_bytes: usize,
    value: &'v [u8],
}

impl<'v> Body<'v> {
    /// Fails with `InvalidArgument` if a part exceeds the limits of the format.
    pub(crate) fn new(key_bytes: usize, lsn: Lsn, payload: Payload<'v>) -> Result<Self> {
        if let Some(problem) = broken_limit(key_bytes, payload) {
            return Err(Error::invalid(format!("{problem} in a leaf")));
        }
        let mut body = Self {
            tag: 0,
            fixed: [0; FIXED_BYTES_MAX],
            fixed_bytes: 0,
            value: &[],
        };
        if lsn != Lsn(0) {
            body.tag |= HAS_LSN;
            body.add(&lsn.0.to_le_bytes());
        }
        match payload {
            Payload::Logged {
                offset,
                value_bytes,
                ..
            } => {
                body.tag |= KIND_LOGGED;
                body.add(&u48_bytes(offset.0));
                body.add_value_length(value_bytes);
            }
            Payload::Inline { value, .. } => {
                body.tag |= KIND_INLINE;
                body.add_value_length(value.len() as u32);
                body.value = value;
            }
            Payload::Tombstone { offset } => {
                body.tag |= KIND_TOMBSTONE;
                body.add(&u48_bytes(offset.0));
            }
            Payload::Erased { key_at } => {
                body.tag |= KIND_ERASED;
                if key_bytes > LONG_KEY_STORED_BYTES {
                    body.add(&u48_bytes(key_at.0));
                }
            }
        }
        if key_bytes > LONG_KEY_STORED_BYTES {
            body.tag |= LONG;
            body.add(&(key_bytes as u32).to_le_bytes()[..KEY_LENGTH_BYTES]);
        }
        let attributes = payload.attributes();
        if !attributes.is_none() {
            body.tag |= HAS_ATTRIBUTES;
            body.add(&encode_attributes(attributes));
        }
        Ok(body)
    }

    /// The two parts of the body, in their order.
    pub(crate) fn parts(&self) -> [&[u8]; 2] {
        [&self.fixed[..self.fixed_bytes], self.value]
    }

    fn add(&mut self, bytes: &[u8]) {
        let end = self.fixed_bytes + bytes.len();
        self.fixed[self.fixed_bytes..end].copy_from_slice(bytes);
        self.fixed_bytes = end;
    }

    fn add_value_length(&mut self, value_bytes: u32) {
        let width = 4 - (value_bytes | 1).leading_zeros() as usize / 8;
        self.tag |= (width as u8 - 1) << WIDTH_SHIFT;
        self.add(&value_bytes.to_le_bytes()[..width]);
    }
}

#[inline]
fn broken_limit(key_bytes: usize, payload: Payload<'_>) -> Option<&'static str> {
    match payload {
        _ if key_bytes > KEY_BYTES_MAX => Some("a key above the longest"),
        Payload::Logged { offset, .. }
        | Payload::Tombstone { offset }
        | Payload::Erased { key_at: offset }
            if offset.0 > LOG_OFFSET_MAX =>
        {
            Some("a log offset above the largest")
        }
        Payload::Logged {
            value_bytes,
            attributes,
            ..
        } if value_bytes as usize > VALUE_BYTES_MAX + attributes.stored_bytes() => {
            Some("a value above the longest")
        }
        Payload::Logged {
            value_bytes,
            attributes,
            ..
        } if (value_bytes as usize) < attributes.stored_bytes() => {
            Some("a value shorter than its attributes")
        }
        Payload::Inline { value, .. } if value.len() > INLINE_VALUE_BYTES_MAX => {
            Some("an inline value above the longest")
        }
        Payload::Inline { .. } if key_bytes > LONG_KEY_STORED_BYTES => {
            Some("an inline value of a long key")
        }
        _ => None,
    }
}

/// A decoded body.
#[derive(Clone, Copy)]
pub(crate) struct DecodedBody<'a> {
    pub(crate) lsn: Lsn,
    pub(crate) payload: Payload<'a>,
    /// Length of the whole key, if it is long.
    pub(crate) long_key_bytes: Option<u32>,
    /// Length of the body in bytes.
    pub(crate) bytes: usize,
}

/// Decodes the body of an entry; `None` if it is damaged.
#[inline]
pub(crate) fn decode_body<'a>(entry: &RawEntry<'a>) -> Option<DecodedBody<'a>> {
    let tag = entry.tag;
    let mut reader = ByteReader {
        bytes: entry.body,
        at: 0,
    };
    let lsn = if tag & HAS_LSN == 0 {
        Lsn(0)
    } else {
        Lsn(u64::from_le_bytes(reader.array()?))
    };
    let kind = tag & KIND_MASK;
    let offset = match kind {
        KIND_LOGGED | KIND_TOMBSTONE => LogOffset(u48(reader.array()?)),
        KIND_ERASED if is_long(tag) => LogOffset(u48(reader.array()?)),
        _ => LogOffset(0),
    };
    let width = usize::from((tag & WIDTH_MASK) >> WIDTH_SHIFT) + 1;
    let value_bytes = if matches!(kind, KIND_TOMBSTONE | KIND_ERASED) {
        0
    } else {
        number(&mut reader, width)?
    };
    let long_key_bytes = if is_long(tag) {
        Some(number(&mut reader, KEY_LENGTH_BYTES)?)
    } else {
        None
    };
    let attributes = match has_attributes(tag) {
        false => Attributes::NONE,
        true => decode_attributes(reader.array()?)?,
    };
    let payload = match kind {
        KIND_LOGGED => Payload::Logged {
            offset,
            value_bytes,
            attributes,
        },
        KIND_INLINE => Payload::Inline {
            value: reader.slice(value_bytes as usize)?,
            attributes,
        },
        KIND_TOMBSTONE => Payload::Tombstone { offset },
        _ => Payload::Erased { key_at: offset },
    };
    Some(DecodedBody {
        lsn,
        payload,
        long_key_bytes,
        bytes: reader.at,
    })
}

/// Whether a decoded body keeps the limits that a builder enforces.
#[inline]
pub(crate) fn is_well_formed(tag: u8, stored_bytes: usize, body: &DecodedBody<'_>) -> bool {
    let key_bytes = match body.long_key_bytes {
        None => stored_bytes,
        Some(whole) => {
            let whole = whole as usize;
            if stored_bytes != LONG_KEY_STORED_BYTES || whole <= stored_bytes {
                return false;
            }
            whole
        }
    };
    let has_no_value = matches!(
        body.payload,
        Payload::Tombstone { .. } | Payload::Erased { .. }
    );
    let is_bare = !has_no_value || tag & (WIDTH_MASK | HAS_ATTRIBUTES) == 0;
    is_bare && broken_limit(key_bytes, body.payload).is_none()
}

/// The next integer, of 1 to 4 bytes.
fn number(reader: &mut ByteReader<'_>, width: usize) -> Option<u32> {
    // If more bytes follow, as they usually do, one load and a mask suffice.
    if let Some(bytes) = array_at(reader.bytes, reader.at) {
        reader.at += width;
        return Some(u32::from_le_bytes(bytes) & (u32::MAX >> (32 - 8 * width)));
    }
    let bytes = reader.slice(width)?.iter().rev();
    Some(bytes.fold(0, |n, &byte| n << 8 | u32::from(byte)))
}
