//! Encoding of one entry of a node, and re-encoding behind a prefix of another length.

use crate::LONG_KEY_STORED_BYTES;
use crate::heads::{HEAD_BYTES, head_of};
use crate::node::{ENTRY_FRONT_BYTES_MAX, TAG_WIDE, split_front};

/// An entry to encode.
pub(crate) struct NewEntry<'a> {
    pub(crate) tag: u8,
    /// Bytes of the key behind the prefix.
    pub(crate) length: usize,
    /// Bytes of the key behind prefix and head.
    pub(crate) rest: &'a [u8],
    pub(crate) body: [&'a [u8]; 2],
}

impl NewEntry<'_> {
    /// Writes the entry so that it ends at `end`, below which there must be room; returns its start.
    pub(crate) fn write(&self, heap: &mut [u8], end: usize) -> usize {
        let [low, high] = (self.length as u16).to_le_bytes();
        let (narrow, wide) = ([self.tag, low], [self.tag | TAG_WIDE, low, high]);
        let front: &[u8] = if high == 0 { &narrow } else { &wide };
        let parts = [front, self.rest, self.body[0], self.body[1]];
        let start = end - parts.iter().map(|part| part.len()).sum::<usize>();
        let mut at = start;
        for part in parts {
            heap[at..][..part.len()].copy_from_slice(part);
            at += part.len();
        }
        start
    }
}

/// The change of an entry's key bytes when the prefix changes.
#[derive(Clone, Copy)]
pub(crate) enum Shift<'a> {
    /// The prefix becomes shorter: these bytes of it move into the entry.
    Longer(&'a [u8]),
    /// The prefix becomes longer: this many bytes move out of the entry.
    Shorter(usize),
}

impl Shift<'_> {
    /// Re-encodes an entry so that it ends at `end` of `heap`. `image` is the entry as encoded in a page, `head` its
    /// head. Returns its new start and head; `None` if the image is damaged or there is no room.
    #[inline]
    pub(crate) fn recode(
        self,
        head: &[u8; HEAD_BYTES],
        image: &[u8],
        heap: &mut [u8],
        end: usize,
    ) -> Option<(usize, [u8; HEAD_BYTES])> {
        let [tag, length, tail @ ..] = image else {
            return None;
        };
        let length_bytes = usize::from(*length);
        // All bytes that move between head and rest fit in two heads.
        let mut bytes = [0; 2 * HEAD_BYTES];
        match self {
            Self::Longer(more)
                if more.len() <= HEAD_BYTES
                    && tag & TAG_WIDE == 0
                    && length_bytes + more.len() <= usize::from(u8::MAX) =>
            {
                bytes[..more.len()].copy_from_slice(more);
                bytes[more.len()..][..HEAD_BYTES].copy_from_slice(head);
                let used = more.len() + length_bytes.min(HEAD_BYTES);
                let moved = bytes.get(HEAD_BYTES..used).unwrap_or_default();
                let start = end.checked_sub(2 + moved.len() + tail.len())?;
                let to = heap.get_mut(start..end)?;
                to[..2].copy_from_slice(&[*tag, *length + more.len() as u8]);
                to[2..][..moved.len()].copy_from_slice(moved);
                to[2 + moved.len()..].copy_from_slice(tail);
                Some((start, head_of(&bytes)))
            }
            Self::Shorter(less)
                if less <= HEAD_BYTES && tag & TAG_WIDE == 0 && less <= length_bytes =>
            {
                let moved = less.min(length_bytes.saturating_sub(HEAD_BYTES));
                bytes[..HEAD_BYTES].copy_from_slice(head);
                bytes[HEAD_BYTES..][..moved].copy_from_slice(tail.get(..moved)?);
                let tail = &tail[moved..];
                let start = end.checked_sub(2 + tail.len())?;
                let to = heap.get_mut(start..end)?;
                to[..2].copy_from_slice(&[*tag, *length - less as u8]);
                to[2..].copy_from_slice(tail);
                Some((start, head_of(&bytes[less..])))
            }
            _ => self.recode_any(head, image, heap, end),
        }
    }

    /// Like [`recode`](Self::recode), for shifts and lengths of any size.
    #[cold]
    fn recode_any(
        self,
        head: &[u8; HEAD_BYTES],
        image: &[u8],
        heap: &mut [u8],
        end: usize,
    ) -> Option<(usize, [u8; HEAD_BYTES])> {
        let (tag, length, bytes) = split_front(image)?;
        let (rest, body) = bytes.split_at_checked(length.saturating_sub(HEAD_BYTES))?;
        let mut key = Vec::with_capacity(LONG_KEY_STORED_BYTES);
        if let Self::Longer(more) = self {
            key.extend_from_slice(more);
        }
        key.extend_from_slice(&head[..length.min(HEAD_BYTES)]);
        key.extend_from_slice(rest);
        let key = match self {
            Self::Longer(_) => key.as_slice(),
            Self::Shorter(less) => key.get(less..)?,
        };
        let entry = NewEntry {
            tag,
            length: key.len(),
            rest: key.get(HEAD_BYTES..).unwrap_or_default(),
            body: [body, &[]],
        };
        // Tag and length take at most three bytes.
        if key.len() + body.len() + ENTRY_FRONT_BYTES_MAX > end || end > heap.len() {
            return None;
        }
        Some((entry.write(heap, end), head_of(key)))
    }
}
