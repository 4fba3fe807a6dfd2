//! A record to be moved, and how it is recognised.

use kreon_base::{Error, RegionId, Result};
use kreon_format::Fragment;

use super::cut::Piece;

/// A record to be moved.
#[derive(Clone, Copy, Debug)]
pub struct MovedRecord<'a> {
    /// The region that it belongs to.
    pub region: RegionId,
    /// A deletion stays one; all else becomes a relocation.
    pub is_deletion: bool,
    /// Whether attributes stand between its key and its value.
    pub has_attributes: bool,
    /// Its key.
    pub key: &'a [u8],
    /// Length of key, attributes and value.
    pub payload_bytes: usize,
}

impl MovedRecord<'_> {
    /// Key, attributes and value of the record, which `fragment` holds in one piece.
    ///
    /// # Errors
    /// `Corruption`: another one stands there.
    pub fn whole<'f>(&self, fragment: &Fragment<'f>) -> Result<&'f [u8]> {
        let payload_bytes = self.payload_bytes;
        let piece = Piece {
            within: 0,
            payload_bytes,
            is_last: true,
        };
        self.part(fragment, &piece, 0)
    }

    /// Bytes of the record in `fragment`, which should be `piece` of it, behind `from` bytes in earlier ones.
    pub(super) fn part<'f>(
        &self,
        fragment: &Fragment<'f>,
        piece: &Piece,
        from: usize,
    ) -> Result<&'f [u8]> {
        let Fragment::Record { header, payload } = fragment else {
            return Err(Error::corruption("filler stands where a record should"));
        };
        let is_of_it = header.region == self.region
            && header.key_bytes as usize == self.key.len()
            && header.has_attributes == self.has_attributes
            && payload.len() == piece.payload_bytes
            && header.starts_record == (from == 0)
            && header.ends_record == piece.is_last;
        let key = self.key.get(from..).unwrap_or_default();
        let key = key.get(..payload.len()).unwrap_or(key);
        match is_of_it && payload.starts_with(key) {
            true => Ok(payload),
            false => Err(Error::corruption("another record stands there")),
        }
    }
}
