//! Copies the segments of the logs, and verifies every fragment that is copied.
//!
//! Bytes of a log never change once they are durable: a later run goes on at the next border of a page. So of a segment
//! that an earlier backup has, only what it has grown by is copied, from the border of a page on.

use std::collections::BTreeMap;
use std::time::Duration;

use kreon_base::{
    Checksum, Error, LogOffset, Lsn, PAGE_BYTES, PageNo, Result, SEGMENT_BYTES, SegmentId, planted,
};
use kreon_device::AlignedBuf;
use kreon_format::{
    BackupPiece, Fragment, FragmentSeal, LOG_HEADER_BYTES, LogSegmentHeader, place_of,
};

use super::data::{DataFile, read_runs};
use super::moment::LogSegment;
use super::pace::Pace;
use crate::checkpoint::catalogue::MAIN_LOG;
use crate::state::Storage;

const SEGMENT: usize = SEGMENT_BYTES as usize;

/// How often moved records that do not verify are read again, and the time between: a write takes no longer.
const READS_AGAIN: u32 = 5;
const PAUSE: Duration = Duration::from_millis(20);

/// Copies segments and notes where all of the state stand.
pub struct LogCopy<'a, 'd, 'p> {
    pub storage: &'a Storage,
    /// What the backup before has, by segment and sequence.
    pub before: BTreeMap<(SegmentId, u64), Vec<BackupPiece>>,
    /// Where the log of that one ends.
    pub before_end: Lsn,
    pub data: &'a mut DataFile<'d>,
    pub pace: &'a mut Pace<'p>,
    /// All segments of the state.
    pub segments: &'a [LogSegment],
    pub pieces: Vec<BackupPiece>,
    /// Of the last segment: bytes in front of its end that are a record without its rest.
    pub torn_bytes: u32,
}

/// Pieces by segment and sequence, in their order.
pub fn by_segment(pieces: &[BackupPiece]) -> BTreeMap<(SegmentId, u64), Vec<BackupPiece>> {
    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for piece in pieces {
        let key = (piece.segment, piece.sequence);
        found.entry(key).or_default().push(*piece);
    }
    found
}

impl LogCopy<'_, '_, '_> {
    /// All segments.
    ///
    /// # Errors
    /// `Corruption` names segment and byte that do not verify; those of device, target and pace.
    pub fn all(&mut self) -> Result<()> {
        let mut buffer = AlignedBuf::new(SEGMENT);
        let segments = self.segments;
        planted!(BackupMissesSegment => let segments = segments.get(1..).unwrap_or_default());
        for segment in segments {
            self.segment(segment, &mut buffer)
                .map_err(|error| error.within(format!("{} of {}", segment.id, segment.log)))?;
        }
        Ok(())
    }

    fn segment(&mut self, segment: &LogSegment, buffer: &mut AlignedBuf) -> Result<()> {
        let before = self.before.remove(&(segment.id, segment.sequence));
        let before = before.unwrap_or_default();
        let had = before.last().map_or(0, |last| last.first + last.count);
        // The page in which the log ended was not full.
        let was_last = segment.log == MAIN_LOG && segment.sequence == place_of(self.before_end).0;
        let is_whole = usize::from(had) * PAGE_BYTES == SEGMENT && !was_last;
        planted!(BackupTakesGrownForWhole => let is_whole = had > 0);
        self.pieces.extend(before);
        if is_whole {
            return self.pace.passed(segment.end.into());
        }
        let first = segment.id.first_page().0;
        let count = (segment.end as usize).div_ceil(PAGE_BYTES);
        let pages: Vec<PageNo> = (first..first + count as u64).map(PageNo).collect();
        let bytes = buffer.get_mut(..count * PAGE_BYTES).unwrap_or_default();
        let Some(end) = self.read(segment, &pages, bytes)? else {
            return self.pace.passed(segment.end.into());
        };
        if segment.log == MAIN_LOG {
            self.torn_bytes += segment.end - end as u32;
        }
        // What stands behind the end is of no run, or of this run and not of this state.
        bytes.get_mut(end..).unwrap_or_default().fill(0);
        let count = end.div_ceil(PAGE_BYTES);
        // The last page may have been filled up since.
        let from = usize::from(had).saturating_sub(1).min(count);
        let grown = bytes.get(from * PAGE_BYTES..count * PAGE_BYTES);
        self.put(segment, from, grown.unwrap_or_default())?;
        self.pace.moved(u64::from(segment.end))
    }

    /// Reads a segment and verifies it, as [`verified_end`](Self::verified_end). Moved records may be written meanwhile, and
    /// a read beside a write may show its later pages and not its first: only what stays is damage.
    fn read(
        &self,
        segment: &LogSegment,
        pages: &[PageNo],
        bytes: &mut [u8],
    ) -> Result<Option<usize>> {
        let mut left = match segment.log == MAIN_LOG {
            true => 0,
            false => READS_AGAIN,
        };
        loop {
            read_runs(self.storage.device.as_ref(), pages, bytes)?;
            match self.verified_end(segment, bytes) {
                Err(_) if left > 0 => left -= 1,
                outcome => return outcome,
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn put(&mut self, segment: &LogSegment, first: usize, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.pieces.push(BackupPiece {
            segment: segment.id,
            sequence: segment.sequence,
            first: first as u16,
            count: (bytes.len() / PAGE_BYTES) as u16,
            checksum: Checksum::of(bytes),
            place: self.data.next(),
        });
        self.data.append(bytes)
    }

    /// Verifies header and fragments. Returns where they end; none if the state needs nothing of the segment.
    fn verified_end(&self, segment: &LogSegment, bytes: &[u8]) -> Result<Option<usize>> {
        let header = bytes
            .first_chunk()
            .map(|page| LogSegmentHeader::decode(page, self.storage.store, segment.id));
        let is_its = |header: &LogSegmentHeader| {
            (header.log, header.sequence) == (segment.log, segment.sequence)
        };
        match header {
            Some(Ok(header)) if is_its(&header) => {}
            // One that was taken for moved records and has none on the device.
            _ if segment.log != MAIN_LOG && !segment.is_live => return Ok(None),
            Some(Err(error)) => return Err(error),
            _ => return Err(Error::corruption("its header is that of another segment")),
        }
        let seal = FragmentSeal {
            store: self.storage.store,
            sequence: segment.sequence,
        };
        let walk = Walk {
            bytes,
            seal,
            offset: segment.id.offset_bytes(),
        };
        match segment.log == MAIN_LOG {
            true => walk
                .main(segment.end as usize, segment.torn_from as usize, |mark| {
                    self.ends_at_seam(segment, mark)
                })
                .map(Some),
            false => walk.moved().map(Some),
        }
    }

    /// Whether a run with this mark may have ended in the last page of what the state has of `segment`, as another one went
    /// on behind it.
    fn ends_at_seam(&self, segment: &LogSegment, mark: Option<u16>) -> Result<bool> {
        if segment.ends_at_seam {
            return Ok(true); // and has written nothing
        }
        if segment.end as usize != SEGMENT {
            return Ok(false);
        }
        let is_next =
            |next: &&LogSegment| next.log == MAIN_LOG && next.sequence == segment.sequence + 1;
        let Some(next) = self.segments.iter().find(is_next) else {
            return Ok(true); // it was freed, so nobody knows
        };
        let mut bytes = AlignedBuf::new(SEGMENT);
        self.storage
            .device
            .read_at(next.id.offset_bytes(), &mut bytes)?;
        let seal = FragmentSeal {
            store: self.storage.store,
            sequence: next.sequence,
        };
        let walk = Walk {
            bytes: &bytes,
            seal,
            offset: next.id.offset_bytes(),
        };
        let first = walk.decode(LOG_HEADER_BYTES as usize);
        Ok(first.is_ok_and(|first| mark != Some(mark_of(&first))))
    }
}

/// The fragments of a segment.
struct Walk<'a> {
    bytes: &'a [u8],
    seal: FragmentSeal,
    /// Of the segment.
    offset: u64,
}

impl Walk<'_> {
    fn decode(&self, at: usize) -> Result<Fragment<'_>> {
        let bytes = self.bytes.get(at..).unwrap_or_default();
        Fragment::decode(bytes, &self.seal, LogOffset(self.offset + at as u64))
    }

    /// Fragments and pads stand one behind the other up to `end`. What does not verify is damage, unless it is the rest of a
    /// page behind which another run went on; `ends_at_seam` tells that of the last page, by the mark of the run before.
    /// A fragment from `torn_from` on may be cut by `end`. Returns where the whole ones end.
    fn main(
        &self,
        end: usize,
        torn_from: usize,
        ends_at_seam: impl Fn(Option<u16>) -> Result<bool>,
    ) -> Result<usize> {
        let (mut at, mut mark) = (LOG_HEADER_BYTES as usize, None);
        while at < end {
            let error = match self.decode(at) {
                Ok(fragment) if at >= torn_from && at + fragment.extent_bytes() > end => {
                    return Ok(at);
                }
                Ok(fragment) => {
                    mark = Some(mark_of(&fragment));
                    at += fragment.extent_bytes();
                    continue;
                }
                Err(error) => error,
            };
            let border = (at + 1).next_multiple_of(PAGE_BYTES);
            let seam = self.decode(border).ok();
            let is_seam = match border < end {
                true => seam.is_some_and(|seam| mark != Some(mark_of(&seam))),
                false => border == end && ends_at_seam(mark)?,
            };
            match is_seam {
                true => at = border,
                false if at >= torn_from => return Ok(at),
                false => return Err(error),
            }
        }
        match at == end {
            true => Ok(end),
            false => Err(Error::corruption(format!(
                "a fragment reaches from the durable part of the log, {end} bytes, to byte {at}"
            ))),
        }
    }

    /// Fragments and pads stand one behind the other up to where the stream of moved records was written; each part of it
    /// begins and ends on the border of a page.
    fn moved(&self) -> Result<usize> {
        let mut at = LOG_HEADER_BYTES as usize;
        while at < self.bytes.len() {
            match self.decode(at) {
                Ok(fragment) => at += fragment.extent_bytes(),
                Err(error) => {
                    let borders =
                        (at.next_multiple_of(PAGE_BYTES)..self.bytes.len()).step_by(PAGE_BYTES);
                    let is_damage = !at.is_multiple_of(PAGE_BYTES)
                        || borders
                            .into_iter()
                            .any(|border| self.decode(border).is_ok());
                    match is_damage {
                        true => return Err(error),
                        false => return Ok(at),
                    }
                }
            }
        }
        Ok(at)
    }
}

/// 9 bits of the run that wrote it, as far as a pad tells.
fn mark_of(fragment: &Fragment<'_>) -> u16 {
    let bits = match fragment {
        Fragment::Record { header, .. } => header.incarnation,
        Fragment::Pad { incarnation, .. } => *incarnation,
    };
    bits & 0x1ff
}
