//! A large value on its way to the device.

use std::ops::Range;

use kreon_base::Checksum;

use super::PARTS_AT_ONCE;
use crate::format::{LargeValue, PART_PREFIX_BYTES, PartOf, Timestamp, item_bytes};
use crate::index::Location;

/// A value whose parts are being written. Its head follows when all these writes have ended, so that the flush that makes
/// the head durable covers them.
pub struct LargePut {
    /// Of the head that is to come; each part names it.
    pub timestamp: Timestamp,
    key_hash: u128,
    value_bytes: usize,
    /// Bytes of each piece but the last.
    piece_bytes: usize,
    /// Slots of the parts that were given to the device, in their order.
    parts: Vec<Location>,
    /// Parts whose writes have not ended.
    under_way: usize,
    /// Of the pieces so far.
    checksum: Checksum,
    /// Of the whole value, when its head was asked for.
    whole: Option<u32>,
}

impl LargePut {
    /// A value of so many bytes, in parts that are items of up to `slot_bytes_max`.
    pub fn new(
        key_hash: u128,
        timestamp: Timestamp,
        value_bytes: usize,
        slot_bytes_max: usize,
    ) -> Self {
        Self {
            timestamp,
            key_hash,
            value_bytes,
            piece_bytes: piece_bytes(slot_bytes_max),
            parts: Vec::new(),
            under_way: 0,
            checksum: Checksum::new(),
            whole: None,
        }
    }

    /// Parts of a value of so many bytes, at least one.
    pub fn parts_of(value_bytes: usize, slot_bytes_max: usize) -> usize {
        value_bytes.div_ceil(piece_bytes(slot_bytes_max)).max(1)
    }

    /// The place in the value of the next piece to be written; `None` if as many as are good are under way, or there is
    /// none.
    pub fn next(&self) -> Option<Range<usize>> {
        let from = self.parts.len() * self.piece_bytes;
        let is_last_over = from >= self.value_bytes && !self.parts.is_empty();
        let is_over = is_last_over || self.under_way >= PARTS_AT_ONCE;
        (!is_over).then(|| from..self.value_bytes.min(from + self.piece_bytes))
    }

    /// The value of the next part. A copy of the piece, and a pass of the checksum of the whole value.
    pub fn part(&mut self, piece: &[u8]) -> Vec<u8> {
        let owner = PartOf {
            key_hash: self.key_hash,
            timestamp: self.timestamp,
            number: self.parts.len() as u32,
        };
        self.checksum = std::mem::take(&mut self.checksum).with(piece);
        [&owner.encode()[..], piece].concat()
    }

    /// The next part is being written to `slot`.
    pub fn begun(&mut self, slot: Location) {
        self.parts.push(slot);
        self.under_way += 1;
    }

    /// The write of a part has ended.
    pub fn written(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }

    /// Whether writes of parts have not ended.
    pub fn is_under_way(&self) -> bool {
        self.under_way > 0
    }

    /// The value of the head. All parts must have been written.
    pub fn head(&mut self) -> Vec<u8> {
        let checksum = &mut self.checksum;
        let whole = || std::mem::take(checksum).finish();
        let head = LargeValue {
            value_bytes: self.value_bytes as u32,
            checksum: *self.whole.get_or_insert_with(whole),
            parts: self.parts.iter().map(|part| part.offset()).collect(),
        };
        head.encode()
    }

    /// Slots of the parts that were given to the device.
    pub fn into_parts(self) -> Vec<Location> {
        self.parts
    }
}

/// Bytes of a piece that fills a slot.
const fn piece_bytes(slot_bytes_max: usize) -> usize {
    slot_bytes_max - item_bytes(0, PART_PREFIX_BYTES)
}
