//! Many items of one shape, one behind the other.

use crate::fields::Fields;
use crate::violation::Violation;

/// Items as they stand in a body, checked; they are read where they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Many<'a> {
    pub(crate) count: u32,
    pub(crate) bytes: &'a [u8],
}

impl<'a> Many<'a> {
    /// All that is left of a body is `count` of what `item` reads.
    pub(crate) fn read<T>(
        count: u32,
        mut fields: Fields<'a>,
        item: impl Fn(&mut Fields<'a>) -> Result<T, Violation>,
    ) -> Result<Self, Violation> {
        let bytes = fields.peek();
        for _ in 0..count {
            item(&mut fields)?;
        }
        fields.end().map(|()| Self { count, bytes })
    }

    pub(crate) const fn len(&self) -> usize {
        self.count as usize
    }

    /// The items, by what has read them before.
    pub(crate) fn iter<T>(
        &self,
        item: fn(&mut Fields<'a>) -> Result<T, Violation>,
    ) -> impl Iterator<Item = T> + use<'a, T> {
        let mut fields = Fields::of(self.bytes);
        std::iter::from_fn(move || item(&mut fields).ok())
    }
}

/// A body of many items while they are collected: each is copied once, to where it stays.
#[derive(Clone, Debug)]
pub(crate) struct ManyBody {
    /// Room for the fixed fields, and the items.
    bytes: Vec<u8>,
    pub(crate) count: u32,
}

impl ManyBody {
    /// Without items, with room for the fixed fields.
    pub(crate) fn new(front_bytes: usize) -> Self {
        Self {
            bytes: vec![0; front_bytes],
            count: 0,
        }
    }

    /// Adds an item, in its parts.
    ///
    /// # Errors
    /// `TooLong` if a body has no room for it; nothing was added.
    pub(crate) fn push(&mut self, parts: &[&[u8]]) -> Result<(), Violation> {
        let item_bytes = parts.iter().map(|part| part.len()).sum::<usize>();
        if self.bytes.len() + item_bytes > crate::limits::REQUEST_BYTES_MAX as usize {
            return Err(Violation::TooLong);
        }
        parts
            .iter()
            .for_each(|part| self.bytes.extend_from_slice(part));
        self.count += 1;
        Ok(())
    }

    /// The items so far, if there are no fixed fields.
    pub(crate) fn items(&self) -> Many<'_> {
        Many {
            count: self.count,
            bytes: &self.bytes,
        }
    }

    pub(crate) const fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The body with these fixed fields, for which there is room.
    pub(crate) fn finish(mut self, front: &[u8]) -> Vec<u8> {
        if let Some(room) = self.bytes.get_mut(..front.len()) {
            room.copy_from_slice(front);
        }
        self.bytes
    }
}
