//! Many keys, one behind the other.

use kreon_base::KEY_BYTES_MAX;

use crate::fields::Fields;
use crate::limits::REQUEST_BYTES_MAX;
use crate::violation::Violation;

/// Bytes in front of a key.
const FRONT_BYTES: usize = 4;

/// Keys as they stand in a request, checked; they are read where they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Keys<'a> {
    count: u32,
    bytes: &'a [u8],
}

impl<'a> Keys<'a> {
    /// All that is left of a body is `count` keys.
    pub(crate) fn read(count: u32, mut fields: Fields<'a>) -> Result<Self, Violation> {
        let bytes = fields.peek();
        for _ in 0..count {
            key(&mut fields)?;
        }
        fields.end()?;
        match count {
            0 => Err(Violation::Count),
            _ => Ok(Self { count, bytes }),
        }
    }

    /// How many.
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Never: a request has a key.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The keys, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut fields = Fields::of(self.bytes);
        std::iter::from_fn(move || key(&mut fields).ok())
    }

    pub(crate) const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

fn key<'a>(fields: &mut Fields<'a>) -> Result<&'a [u8], Violation> {
    let len_bytes = fields.len_upto(KEY_BYTES_MAX)?;
    fields.bytes(len_bytes)
}

/// Keys for a request, while they are collected.
#[derive(Clone, Debug, Default)]
pub struct KeyList {
    count: u32,
    bytes: Vec<u8>,
}

impl KeyList {
    /// None.
    pub const fn new() -> Self {
        Self {
            count: 0,
            bytes: Vec::new(),
        }
    }

    /// Adds a copy of a key.
    ///
    /// # Errors
    /// `Count` for a key of more than [`KEY_BYTES_MAX`] bytes, `TooLong` if no request has room for it; nothing was added.
    pub fn push(&mut self, key: &[u8]) -> Result<(), Violation> {
        if key.len() > KEY_BYTES_MAX {
            return Err(Violation::Count);
        }
        if self.bytes.len() + FRONT_BYTES + key.len() > REQUEST_BYTES_MAX as usize {
            return Err(Violation::TooLong);
        }
        self.bytes
            .extend_from_slice(&(key.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(key);
        self.count += 1;
        Ok(())
    }

    /// The keys so far. A request with none is refused.
    pub fn keys(&self) -> Keys<'_> {
        Keys {
            count: self.count,
            bytes: &self.bytes,
        }
    }
}
