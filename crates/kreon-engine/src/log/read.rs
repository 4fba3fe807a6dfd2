//! Reading records.
//!
//! Every fragment is verified each time: its checksum, its region, the length of its key, and the key
//! itself. A record whose segment is still in memory is read there; the mapping is asked only for
//! pages that are wholly on the device and final.

use std::ops::Range;

use kreon_base::{Error, ErrorKind, LogOffset, RegionId, Result, SegmentId};
use kreon_format::{FRAGMENT_HEADER_BYTES, Fragment, RecordKind, fragment_bytes};
use kreon_mapping::FinalBytes;

use super::cut::{PAYLOAD_START, Piece, Pieces};
use super::fragments::at_record;
use super::open::Log;

/// Where the log reads what is on the device: the mapping.
pub trait LogPages {
    /// Calls `f` with bytes of the volume: without a copy where they stand in one page, else through
    /// `scratch`.
    fn with_bytes<R>(
        &self,
        bytes: FinalBytes,
        scratch: &mut Vec<u8>,
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<R>;

    /// Fills `into` with the bytes of the volume from `offset_bytes` on.
    fn read_bytes(&self, offset_bytes: u64, into: &mut [u8]) -> Result<()>;

    /// Keeps nothing of these bytes in memory: they did not verify, and are read from the device again.
    fn forget(&self, offset_bytes: u64, len: usize);
}

/// A record with a value, as an index knows it.
#[derive(Clone, Copy, Debug)]
pub struct ValueAt<'a> {
    /// Where it starts.
    pub offset: LogOffset,
    /// Its region.
    pub region: RegionId,
    /// Its key.
    pub key: &'a [u8],
    /// Length of its value.
    pub value_bytes: u32,
}

impl ValueAt<'_> {
    fn payload_bytes(&self) -> usize {
        self.key.len() + self.value_bytes as usize
    }

    fn pieces(&self) -> Pieces {
        Pieces::new(self.offset.within_segment(), self.payload_bytes())
    }

    /// Checks the fragment that stands where `piece` should, with `from` bytes of the record before
    /// it; returns where the value is in its payload.
    fn check(&self, fragment: &Fragment<'_>, piece: &Piece, from: usize) -> Result<Range<usize>> {
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
        if header.starts_record != (from == 0) || header.ends_record != piece.is_last {
            return wrong("a piece of another record stands here");
        }
        if matches!(header.kind, RecordKind::Delete | RecordKind::DeleteRange) {
            return wrong("the record is a deletion");
        }
        if header.kind == RecordKind::MakeRegion {
            return wrong("the record makes a region");
        }
        let key = self.key.get(from..).unwrap_or_default();
        let key = key.get(..payload.len()).unwrap_or(key);
        if !payload.starts_with(key) {
            return wrong("the record has another key");
        }
        Ok(key.len()..payload.len())
    }
}

impl Log {
    /// Calls `f` with the value of the record `at`. Copies nothing where the record stands in one
    /// buffer or one page; a longer one goes through `scratch`.
    ///
    /// # Errors
    /// `Corruption` if what stands there is not that record.
    pub fn with_value<R>(
        &self,
        pages: &impl LogPages,
        at: &ValueAt<'_>,
        scratch: &mut Vec<u8>,
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<R> {
        let Some(piece) = at.pieces().next().filter(|piece| piece.is_last) else {
            self.read_value_into(pages, at, scratch)?;
            return Ok(f(scratch));
        };
        let extent = fragment_bytes(piece.payload_bytes);
        self.with_fragment(pages, at.offset, extent, scratch, |fragment| {
            let range = at.check(&fragment, &piece, 0)?;
            let Fragment::Record { payload, .. } = fragment else {
                return Err(Error::corruption("filler stands where a record should"));
            };
            Ok(f(payload.get(range).unwrap_or_default()))
        })
        .map_err(|error| at_record(&error, at.offset, at.key))
    }

    /// Puts the value of the record `at` into `value`, in place of what is there. Reads it one
    /// fragment (2 MiB) at a time.
    ///
    /// # Errors
    /// `Corruption` if what stands there is not that record; `value` holds anything then.
    pub fn read_value_into(
        &self,
        pages: &impl LogPages,
        at: &ValueAt<'_>,
        value: &mut Vec<u8>,
    ) -> Result<()> {
        value.clear();
        self.append_value(pages, at, value)
            .map_err(|error| at_record(&error, at.offset, at.key))
    }

    fn append_value(
        &self,
        pages: &impl LogPages,
        at: &ValueAt<'_>,
        value: &mut Vec<u8>,
    ) -> Result<()> {
        let (mut segment, mut from) = (at.offset.segment(), 0);
        for piece in at.pieces() {
            let offset = LogOffset(segment.offset_bytes() + u64::from(piece.within));
            let extent = fragment_bytes(piece.payload_bytes);
            self.append_part(pages, offset, extent, value, |fragment| {
                at.check(fragment, &piece, from)
            })?;
            from += piece.payload_bytes;
            if piece.is_last {
                return Ok(());
            }
            segment = self.following(segment)?;
        }
        Err(Error::corruption("no record stands there"))
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
                    // Perhaps its length was read wrong, once.
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
            let segment = self.following(offset.segment())?;
            offset = LogOffset(segment.offset_bytes() + u64::from(PAYLOAD_START));
        }
    }

    /// How many bytes of which segments a record takes, in the order of the log. Costs no I/O.
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
