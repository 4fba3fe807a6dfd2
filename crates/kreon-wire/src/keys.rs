//! Many keys, one behind the other.

use kreon_base::KEY_BYTES_MAX;

use crate::fields::Fields;
use crate::many::{Many, ManyBody};
use crate::violation::Violation;

/// Keys as they stand in a request, checked; they are read where they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Keys<'a>(Many<'a>);

impl<'a> Keys<'a> {
    /// All that is left of a body is `count` keys.
    pub(crate) fn read(count: u32, fields: Fields<'a>) -> Result<Self, Violation> {
        match Many::read(count, fields, key)? {
            Many { count: 0, .. } => Err(Violation::Count),
            keys => Ok(Self(keys)),
        }
    }

    /// How many.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Never: a request has a key.
    pub const fn is_empty(&self) -> bool {
        self.0.count == 0
    }

    /// The keys, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.0.iter(key)
    }

    pub(crate) const fn bytes(&self) -> &'a [u8] {
        self.0.bytes
    }
}

fn key<'a>(fields: &mut Fields<'a>) -> Result<&'a [u8], Violation> {
    let len_bytes = fields.len_upto(KEY_BYTES_MAX)?;
    fields.bytes(len_bytes)
}

/// Keys for a request, while they are collected.
#[derive(Clone, Debug)]
pub struct KeyList(ManyBody);

impl Default for KeyList {
    fn default() -> Self {
        Self::new()
    }
}

impl KeyList {
    /// None.
    pub fn new() -> Self {
        Self(ManyBody::new(0))
    }

    /// Adds a copy of a key.
    ///
    /// # Errors
    /// `Count` for a key of more than [`KEY_BYTES_MAX`] bytes, `TooLong` if no request has room for it; nothing was added.
    pub fn push(&mut self, key: &[u8]) -> Result<(), Violation> {
        if key.len() > KEY_BYTES_MAX {
            return Err(Violation::Count);
        }
        self.0.push(&[&(key.len() as u32).to_le_bytes(), key])
    }

    /// The keys so far. A request with none is refused.
    pub fn keys(&self) -> Keys<'_> {
        Keys(self.0.items())
    }
}
