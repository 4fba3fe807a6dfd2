//! Reading records.
//!
//! Invariant: of every fragment region, length of the key and the key itself are compared each time. Its checksum is
//! verified when it comes from the device, and whenever the options or a copy ask for it.

use std::ops::{ControlFlow, Range};

use kreon_base::{Attributes, Error, ErrorKind, LogOffset, RegionId, Result, SegmentId};
use kreon_format::{
    FRAGMENT_HEADER_BYTES, Fragment, RecordKind, encode_attributes, fragment_bytes,
};

use super::cut::{PAYLOAD_START, Piece, Pieces};
use super::pages::LogPages;
use super::reader::{LogReader, at_record};
use super::take_value::TakeValue;

const OTHER_ATTRIBUTES: &str = "the record has other attributes";

/// A record with a value, as an index knows it.
#[derive(Clone, Copy, Debug)]
pub struct ValueAt<'a> {
    /// Where it starts.
    pub offset: LogOffset,
    /// Its region.
    pub region: RegionId,
    /// Its key.
    pub key: &'a [u8],
    /// Bytes behind its key: its value, and in front of that its attributes, if it has any.
    pub value_bytes: u32,
    /// Whether it has attributes.
    pub has_attributes: bool,
}

impl ValueAt<'_> {
    /// Bytes in front of the value: the key and, if there are any, the attributes.
    #[inline]
    fn front_bytes(&self) -> usize {
        match self.has_attributes {
            true => self.key.len() + Attributes::BYTES,
            false => self.key.len(),
        }
    }

    fn payload_bytes(&self) -> usize {
        self.key.len() + self.value_bytes as usize
    }

    pub(super) fn pieces(&self) -> Pieces {
        Pieces::new(self.offset.within_segment(), self.payload_bytes())
    }

    /// Checks the fragment that stands where `piece` should, with `from` bytes of the record before
    /// it; returns where the value is in its payload.
    pub(super) fn check(
        &self,
        fragment: &Fragment<'_>,
        piece: &Piece,
        from: usize,
    ) -> Result<Range<usize>> {
        let wrong = |what: &str| Err(Error::corruption(what));
        let Fragment::Record { header, payload } = fragment else {
            return wrong("filler stands where a record should");
        };
        if header.region != self.region {
            return wrong("the record is of another region");
        }
        if header.key_bytes as usize != self.key.len() || payload.len() != piece.payload_bytes {
            return wrong("the record has other lengths");
        }
        if header.has_attributes != self.has_attributes {
            return wrong(OTHER_ATTRIBUTES);
        }
        if header.starts_record != (from == 0) || header.ends_record != piece.is_last {
            return wrong("a piece of another record stands here");
        }
        if matches!(header.kind, RecordKind::Delete | RecordKind::DeleteRange) {
            return wrong("the record is a deletion");
        }
        if header.kind == RecordKind::MakeRegion {
            return wrong("the record makes a region");
        }
        if header.kind.is_notice() {
            return wrong("the record is for the change feed");
        }
        let key = self.key.get(from..).unwrap_or_default();
        let key = key.get(..payload.len()).unwrap_or(key);
        if !payload.starts_with(key) {
            return wrong("the record has another key");
        }
        let front = self.front_bytes().saturating_sub(from).min(payload.len());
        Ok(front..payload.len())
    }
}

impl LogReader {
    /// Hands the value of the record `at` to `take`. Copies nothing where the record stands in one
    /// buffer or one page. A value of several fragments is put together in one vector.
    ///
    /// # Errors
    /// `Corruption` if that record does not stand there; a buffer that it was to fill holds anything then.
    #[inline]
    pub fn with_value<T: TakeValue>(
        &self,
        pages: &impl LogPages,
        at: &ValueAt<'_>,
        take: T,
    ) -> Result<T::Taken> {
        let Some(piece) = at.pieces().next().filter(|piece| piece.is_last) else {
            return take.assemble(|value| self.read_value_into(pages, at, value));
        };
        let extent = fragment_bytes(piece.payload_bytes);
        self.with_fragment(pages, at.offset, extent, &mut Vec::new(), |fragment| {
            let range = at.check(&fragment, &piece, 0)?;
            let Fragment::Record { payload, .. } = fragment else {
                return Err(Error::corruption("filler stands where a record should"));
            };
            Ok(take.take(payload.get(range).unwrap_or_default()))
        })
        .map_err(|error| at_record(&error, at.offset, at.key))
    }

    /// Puts the value of the record `at` into `value`, in place of its content. Reads it one
    /// fragment (2 MiB) at a time; `value` grows once, to the length of the record.
    ///
    /// # Errors
    /// `Corruption` if that record does not stand there; `value` holds anything then.
    pub fn read_value_into(
        &self,
        pages: &impl LogPages,
        at: &ValueAt<'_>,
        value: &mut Vec<u8>,
    ) -> Result<()> {
        value.clear();
        // Each fragment is appended with its header and its part of the key, which are then cut off.
        value.reserve_exact(fragment_bytes(at.payload_bytes()));
        let front_bytes = at.front_bytes();
        self.read_parts(pages, at, (0, front_bytes), value, |_| {
            ControlFlow::Continue(())
        })
    }

    /// Reads and verifies the record `at`, which is to have these attributes, one fragment at a time: takes the memory of
    /// one.
    ///
    /// # Errors
    /// `Corruption` if that record does not stand there.
    pub fn check_value(
        &self,
        pages: &impl LogPages,
        at: &ValueAt<'_>,
        attributes: Attributes,
    ) -> Result<()> {
        let expected = (!attributes.is_none()).then(|| encode_attributes(attributes));
        // They may be cut by the end of a segment.
        let (mut left, mut are_same) = (expected.as_ref().map_or(&[][..], |bytes| bytes), true);
        self.read_parts(pages, at, (0, at.key.len()), &mut Vec::new(), |part| {
            let (here, behind) = left.split_at(left.len().min(part.len()));
            are_same &= part.starts_with(here);
            left = behind;
            part.clear();
            ControlFlow::Continue(())
        })?;
        match are_same && left.is_empty() {
            true => Ok(()),
            false => {
                let error = Error::corruption(OTHER_ATTRIBUTES);
                Err(at_record(&error, at.offset, at.key))
            }
        }
    }

    /// Puts the part of the value that one fragment holds into `part`, in place of its content: that with
    /// the byte `position` of the value. Returns the position of its first byte. Empty behind the end.
    ///
    /// # Errors
    /// `Corruption` if that record does not stand there; `part` holds anything then.
    pub fn read_part(
        &self,
        pages: &impl LogPages,
        at: &ValueAt<'_>,
        position: u32,
        part: &mut Vec<u8>,
    ) -> Result<u32> {
        part.clear();
        let (mut start, wanted) = (0, at.front_bytes() + position as usize);
        if wanted >= at.payload_bytes() {
            return Ok(position);
        }
        let mut end = 0;
        for piece in at.pieces() {
            (start, end) = (end, end + piece.payload_bytes);
            if end > wanted {
                break;
            }
        }
        let front_bytes = at.front_bytes();
        self.read_parts(pages, at, (start, front_bytes), part, |_| {
            ControlFlow::Break(())
        })?;
        Ok(start.saturating_sub(front_bytes) as u32)
    }

    /// Appends the parts of key, attributes and value to `out` from the fragment on that begins with byte `first` of
    /// them, without the `front_bytes` of the record. `read` is called behind each and says whether to read on.
    fn read_parts(
        &self,
        pages: &impl LogPages,
        at: &ValueAt<'_>,
        (first, front_bytes): (usize, usize),
        out: &mut Vec<u8>,
        mut read: impl FnMut(&mut Vec<u8>) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut parts = || {
            let (mut segment, mut from) = (at.offset.segment(), 0);
            for piece in at.pieces() {
                if from >= first {
                    let offset = LogOffset(segment.offset_bytes() + u64::from(piece.within));
                    let extent = fragment_bytes(piece.payload_bytes);
                    self.append_part(pages, offset, extent, out, |fragment| {
                        let end = at.check(fragment, &piece, from)?.end;
                        Ok(front_bytes.saturating_sub(from).min(end)..end)
                    })?;
                    if read(out).is_break() {
                        return Ok(());
                    }
                }
                from += piece.payload_bytes;
                if piece.is_last {
                    return Ok(());
                }
                segment = self.table.following(segment)?;
            }
            Err(Error::corruption("no record stands there"))
        };
        parts().map_err(|error| at_record(&error, at.offset, at.key))
    }

    /// Puts the key of the record at `offset`, which has `key_bytes`, into `key`, in place of what is
    /// there. Reads and verifies whole fragments: as long as a value that follows, up to 2 MiB.
    ///
    /// # Errors
    /// `Corruption` if no record with a key of that length starts there.
    pub fn read_key(
        &self,
        pages: &impl LogPages,
        offset: LogOffset,
        key_bytes: u32,
        key: &mut Vec<u8>,
    ) -> Result<()> {
        key.clear();
        self.append_key(pages, offset, key_bytes, key)
            .map_err(|error| at_record(&error, offset, key))
    }

    fn append_key(
        &self,
        pages: &impl LogPages,
        start: LogOffset,
        key_bytes: u32,
        key: &mut Vec<u8>,
    ) -> Result<()> {
        let mut offset = start;
        loop {
            let (base, missing) = (key.len(), key_bytes as usize - key.len());
            let mut ends_record = false;
            let mut take = |key: &mut Vec<u8>| {
                let extent = self.extent_at(pages, offset)?;
                self.append_part(pages, offset, extent, key, |fragment| {
                    let Fragment::Record { header, payload } = fragment else {
                        return Err(Error::corruption("filler stands where a record should"));
                    };
                    if header.key_bytes != key_bytes || header.starts_record != (offset == start) {
                        return Err(Error::corruption("a record with another key stands here"));
                    }
                    ends_record = header.ends_record;
                    Ok(0..payload.len().min(missing))
                })
            };
            match take(key) {
                Err(error) if error.kind() == ErrorKind::Corruption => {
                    // The device may have read its length wrong, once.
                    key.truncate(base);
                    pages.forget(offset.0, FRAGMENT_HEADER_BYTES);
                    take(key)?;
                }
                outcome => outcome?,
            }
            if key.len() == key_bytes as usize {
                return Ok(());
            }
            if ends_record {
                return Err(Error::corruption("the record is shorter than its key"));
            }
            let segment = self.table.following(offset.segment())?;
            offset = LogOffset(segment.offset_bytes() + u64::from(PAYLOAD_START));
        }
    }

    /// How many bytes of which segments a record takes, in the order of the log; `value_bytes` are all behind its key.
    /// Costs no I/O.
    pub fn charges(
        &self,
        offset: LogOffset,
        key_bytes: u32,
        value_bytes: u32,
    ) -> impl Iterator<Item = (SegmentId, u32)> + '_ {
        let payload_bytes = key_bytes as usize + value_bytes as usize;
        let segments = std::iter::successors(Some(offset.segment()), |s| self.table.next(*s));
        Pieces::new(offset.within_segment(), payload_bytes)
            .zip(segments)
            .map(|(piece, segment)| (segment, fragment_bytes(piece.payload_bytes) as u32))
    }
}
