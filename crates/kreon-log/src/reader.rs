//! Fragments in memory or on the device, verified.
//!
//! Invariant: a fragment is read in frames if it is there, as frames hold only final bytes; else in the buffer of its
//! segment; else the mapping is asked for bytes that are on the device and final.

use std::ops::Range;
use std::sync::Arc;

use kreon_base::{Error, LogOffset, PAGE_BYTES, Result, SEGMENT_BYTES, SegmentId, planted};
use kreon_format::{FRAGMENT_HEADER_BYTES, Fragment, fragment_bytes, fragment_extent};
use kreon_mapping::{FinalBytes, LentRecord};

use super::buffers::{Buffers, FoundBuffer};
use super::cut::{PAYLOAD_START, SEGMENT};
use super::home::LogHome;
use super::pages::LogPages;
use super::segments::SegmentTable;

/// Most bytes of a key that an error message shows.
const KEY_SHOWN_BYTES_MAX: usize = 64;

/// Where a fragment is read.
enum Site {
    /// Its segment is in memory.
    Memory(FoundBuffer),
    /// On the device; bytes from `end` of the segment on are not final.
    Device { end: u32 },
}

/// A fragment that is read.
pub(super) struct FragmentAt {
    offset: LogOffset,
    /// Bytes of the log that it takes.
    pub extent: usize,
    /// Whether its checksum is verified even if it was before.
    verifies: bool,
}

/// Reads the open log. A record whose segment is still in memory is read there, all others through the mapping or, for
/// garbage collection, straight from the device.
pub struct LogReader {
    pub(super) home: LogHome,
    pub(super) table: Arc<SegmentTable>,
    pub(super) buffers: Arc<Buffers>,
    /// Whether records are verified even if they have been in memory since they were.
    pub(super) verifies_every_read: bool,
}

impl LogReader {
    /// Sequence of a segment in its stream; none: it holds no records.
    pub fn sequence_of(&self, segment: SegmentId) -> Option<u64> {
        self.table.sequence(segment)
    }

    /// The fragment at the start of `bytes`, which stand at `offset`.
    ///
    /// # Errors
    /// `Corruption`.
    pub fn fragment<'a>(&self, offset: LogOffset, bytes: &'a [u8]) -> Result<Fragment<'a>> {
        let sequence = self.table.sequence_at(offset)?;
        Fragment::decode(bytes, &self.home.seal(sequence), offset)
    }

    /// The bytes on the device of a record at `offset` with so many bytes of key and value, without those in
    /// other segments. `None`: the record is read in memory, because its segment is not on the device
    /// or only in part, or not at all, because the segment is not of the log.
    pub fn on_device(&self, offset: LogOffset, payload_bytes: usize) -> Option<FinalBytes> {
        let within = offset.within_segment();
        let segment = offset.segment();
        let found = self.buffered(segment, self.table.sequence(segment)?);
        let end = match found.as_ref().and_then(|found| found.as_ref()) {
            Some(buffered) => buffered.readable_from(),
            None => SEGMENT,
        };
        // Bytes of the segment behind this one must not come into a frame: they would be stale when the log writes that
        // segment.
        let rest = SEGMENT_BYTES as usize - within as usize;
        let len = fragment_bytes(payload_bytes).min(rest);
        (within < end).then(|| final_bytes(offset, len, end))
    }

    /// Calls `f` with the fragment at `offset`, which takes `extent` bytes of the log. Its checksum is verified unless it
    /// was since it came into memory, or it was never anywhere else.
    ///
    /// # Errors
    /// `Corruption` if none stands there; those of `f`.
    #[inline]
    pub fn with_fragment<R>(
        &self,
        pages: &impl LogPages,
        offset: LogOffset,
        extent: usize,
        scratch: &mut Vec<u8>,
        f: impl FnOnce(Fragment<'_>) -> Result<R>,
    ) -> Result<R> {
        self.lend_fragment(pages, &self.fragment_at(offset, extent), scratch, f)
    }

    /// [`with_fragment`](Self::with_fragment) whose checksum is verified in any case: for copies, which get a checksum of
    /// their own. Damage in memory would be sealed by it.
    ///
    /// # Errors
    /// As there.
    pub fn with_verified_fragment<R>(
        &self,
        pages: &impl LogPages,
        offset: LogOffset,
        extent: usize,
        scratch: &mut Vec<u8>,
        f: impl FnOnce(Fragment<'_>) -> Result<R>,
    ) -> Result<R> {
        let at = FragmentAt {
            verifies: true,
            ..self.fragment_at(offset, extent)
        };
        self.lend_fragment(pages, &at, scratch, f)
    }

    /// A fragment that is verified unless it was before.
    #[inline]
    pub(super) fn fragment_at(&self, offset: LogOffset, extent: usize) -> FragmentAt {
        FragmentAt {
            offset,
            extent,
            verifies: self.verifies_every_read,
        }
    }

    #[inline]
    fn lend_fragment<R>(
        &self,
        pages: &impl LogPages,
        at: &FragmentAt,
        scratch: &mut Vec<u8>,
        f: impl FnOnce(Fragment<'_>) -> Result<R>,
    ) -> Result<R> {
        let mut f = Some(f);
        // A frame holds final bytes only, so buffers need not be asked.
        let resident = pages.with_resident(at.offset.0, at.extent, scratch, |lent| {
            let fragment = self.lent_fragment(at, &lent)?;
            f.take().map(|f| f(fragment))
        });
        match resident.flatten() {
            Some(found) => found,
            None => match f.take() {
                Some(f) => self.with_fragment_elsewhere(pages, at, scratch, f),
                None => Err(nothing()),
            },
        }
    }

    /// The fragment of a record in frames; `None` if it does not verify: then it is looked for elsewhere.
    #[inline]
    pub(super) fn lent_fragment<'l>(
        &self,
        at: &FragmentAt,
        lent: &'l LentRecord<'_>,
    ) -> Option<Fragment<'l>> {
        if lent.is_verified() && !at.verifies {
            return Fragment::decode_verified(lent.bytes());
        }
        let sequence = self.table.sequence(at.offset.segment())?;
        let fragment = Fragment::decode(lent.bytes(), &self.home.seal(sequence), at.offset).ok()?;
        lent.set_verified();
        Some(fragment)
    }

    /// [`lend_fragment`](Self::lend_fragment) of one that is in a buffer or on the device.
    fn with_fragment_elsewhere<R>(
        &self,
        pages: &impl LogPages,
        at: &FragmentAt,
        scratch: &mut Vec<u8>,
        f: impl FnOnce(Fragment<'_>) -> Result<R>,
    ) -> Result<R> {
        let (offset, extent) = (at.offset, at.extent);
        let sequence = self.table.sequence_at(offset)?;
        let seal = self.home.seal(sequence);
        match self.site(offset, sequence) {
            Site::Memory(buffered) => {
                let bytes = in_memory(&buffered, offset)?;
                let known = match at.verifies {
                    true => None,
                    false => Fragment::decode_verified(bytes),
                };
                f(known.map_or_else(|| Fragment::decode(bytes, &seal, offset), Ok)?)
            }
            Site::Device { end } => {
                check_bounds(offset, extent, end)?;
                let mut f = Some(f);
                let found = look_twice(pages, offset, extent, || {
                    pages.with_bytes(final_bytes(offset, extent, end), scratch, |bytes| {
                        let fragment = Fragment::decode(bytes, &seal, offset)?;
                        Ok(f.take().map(|f| f(fragment)))
                    })
                })?;
                found.ok_or_else(nothing)?
            }
        }
    }

    /// Appends to `out` a part of the payload of the fragment at `offset`: the one that `choose`
    /// returns. A fragment of several pages is read straight into `out`.
    pub(super) fn append_part(
        &self,
        pages: &impl LogPages,
        offset: LogOffset,
        extent: usize,
        out: &mut Vec<u8>,
        choose: impl FnOnce(&Fragment<'_>) -> Result<Range<usize>>,
    ) -> Result<()> {
        let in_one_page = offset.0 as usize % PAGE_BYTES + extent <= PAGE_BYTES;
        let sequence = self.table.sequence_at(offset)?;
        // A buffer that was found is let go before it is looked up again.
        let end = match self.site(offset, sequence) {
            Site::Device { end } if !in_one_page => Some(end),
            _ => None,
        };
        let Some(end) = end else {
            let mut scratch = Vec::new();
            return self.with_verified_fragment(pages, offset, extent, &mut scratch, |fragment| {
                let range = choose(&fragment)?;
                if let Fragment::Record { payload, .. } = fragment {
                    out.extend_from_slice(payload.get(range).unwrap_or_default());
                }
                Ok(())
            });
        };
        let seal = self.home.seal(sequence);
        check_bounds(offset, extent, end)?;
        let base = out.len();
        out.resize(base + extent, 0);
        let bytes = out.get_mut(base..).unwrap_or_default();
        let mut choose = Some(choose);
        let chosen = look_twice(pages, offset, extent, || {
            pages.read_bytes(offset.0, bytes)?;
            let fragment = Fragment::decode(bytes, &seal, offset);
            Ok(fragment.map(|found| choose.take().map(|choose| choose(&found))))
        })?;
        let chosen = chosen.ok_or_else(nothing)??;
        let from = FRAGMENT_HEADER_BYTES + chosen.start;
        bytes.copy_within(from..from + chosen.len(), 0);
        out.truncate(base + chosen.len());
        Ok(())
    }

    /// Length of the fragment at `offset` by its header, which is final but not verified.
    pub(super) fn extent_at(&self, pages: &impl LogPages, offset: LogOffset) -> Result<usize> {
        match self.site(offset, self.table.sequence_at(offset)?) {
            Site::Memory(buffered) => Ok(in_memory(&buffered, offset)?.len()),
            Site::Device { end } => {
                check_bounds(offset, FRAGMENT_HEADER_BYTES, end)?;
                let bytes = final_bytes(offset, 8, end);
                let start = pages.with_bytes(bytes, &mut Vec::new(), |bytes| {
                    bytes.first_chunk().map(fragment_extent)
                })?;
                let extent = start.ok_or_else(nothing)?;
                check_bounds(offset, extent, end)?;
                Ok(extent)
            }
        }
    }

    /// Where `offset` in the segment `sequence` is read.
    fn site(&self, offset: LogOffset, sequence: u64) -> Site {
        let Some(found) = self.buffered(offset.segment(), sequence) else {
            return Site::Device { end: SEGMENT };
        };
        match found.as_ref().map(|buffered| buffered.readable_from()) {
            Some(end) if offset.within_segment() < end => Site::Device { end },
            _ => Site::Memory(found),
        }
    }

    /// The buffer of `segment` as the segment `sequence` of the log, if it is in memory.
    fn buffered(&self, segment: SegmentId, sequence: u64) -> Option<FoundBuffer> {
        let found = self.buffers.find(sequence);
        planted!(BufferOfEarlierUse => let found = self.buffers.find_any_of(segment));
        found
    }
}

/// What `look` finds in the bytes at `offset`. What does not verify is looked at again: the device may have read it
/// wrong, once.
#[inline]
fn look_twice<T>(
    pages: &impl LogPages,
    offset: LogOffset,
    extent: usize,
    mut look: impl FnMut() -> Result<Result<T>>,
) -> Result<T> {
    look()?.or_else(|_| {
        pages.forget(offset.0, extent);
        look()?
    })
}

/// `error`, found while reading the record of `key` at `offset`.
#[cold]
pub(super) fn at_record(error: &Error, offset: LogOffset, key: &[u8]) -> Error {
    let shown = key.get(..KEY_SHOWN_BYTES_MAX).unwrap_or(key).escape_ascii();
    let segment = offset.segment();
    error.within(format!(
        "the record of key \"{shown}\" in {segment} at {offset}"
    ))
}

/// Fails for bytes that are not wholly within the records of a segment that end at `end`.
fn check_bounds(offset: LogOffset, extent: usize, end: u32) -> Result<()> {
    let within = offset.within_segment();
    if within < PAYLOAD_START || within as usize + extent > end as usize {
        return Err(nothing());
    }
    Ok(())
}

/// `len` bytes at `offset` of a segment that is final up to `end`.
fn final_bytes(offset: LogOffset, len: usize, end: u32) -> FinalBytes {
    FinalBytes {
        offset_bytes: offset.0,
        len_bytes: len,
        final_end_bytes: offset.segment().offset_bytes() + u64::from(end),
    }
}

fn in_memory(found: &FoundBuffer, offset: LogOffset) -> Result<&[u8]> {
    let buffered = found.as_ref().ok_or_else(nothing)?;
    buffered
        .buffer()
        .committed(offset.within_segment())
        .ok_or_else(nothing)
}

#[cold]
fn nothing() -> Error {
    Error::corruption("no record stands there")
}
