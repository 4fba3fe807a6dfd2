//! All fragments of a segment, and those of one record, straight from the device: for garbage collection. Nothing of
//! them stays in the mapping.

use kreon_base::{Error, LogOffset, PAGE_BYTES, Result, SegmentId};
use kreon_device::{AlignedBuf, Device, Read};
use kreon_format::{Fragment, FragmentHeader, fragment_bytes, fragment_extent};

use super::cut::{PAYLOAD_START, Pieces, SEGMENT};
use super::moved_record::MovedRecord;
use super::reader::LogReader;

/// Most bytes of one read: several are under way at once.
const READ_BYTES: usize = 256 << 10;

/// A range of a segment in memory.
struct ReadWindow<'b> {
    buffer: &'b mut AlignedBuf,
    start: usize,
    end: usize,
}

impl LogReader {
    /// Shows every fragment of a record in `segment`, which is wholly on the device, and where it stands. Reads
    /// with the whole of `buffer`. What does not verify is passed over up to the next border of a page: a run
    /// that took over from another began at one.
    ///
    /// # Errors
    /// `Io`; those of `show`.
    pub fn fragments_of(
        &self,
        segment: SegmentId,
        sequence: u64,
        buffer: &mut AlignedBuf,
        show: impl FnMut(LogOffset, &FragmentHeader, &[u8]) -> Result<()>,
    ) -> Result<()> {
        self.fragments_from((segment, sequence), PAYLOAD_START, buffer, show)
    }

    /// The same from position `from` of the segment on, where a fragment begins.
    pub(super) fn fragments_from(
        &self,
        (segment, sequence): (SegmentId, u64),
        from: u32,
        buffer: &mut AlignedBuf,
        mut show: impl FnMut(LogOffset, &FragmentHeader, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let device = self.home.device.as_ref();
        let seal = self.home.seal(sequence);
        let mut window = ReadWindow {
            buffer,
            start: 0,
            end: 0,
        };
        let mut at = from as usize;
        while at < SEGMENT as usize {
            let offset = LogOffset(segment.offset_bytes() + at as u64);
            let extent = window
                .bytes(device, segment, at, 8)?
                .first_chunk()
                .map_or(0, fragment_extent);
            let is_within = extent > 0 && at + extent <= SEGMENT as usize;
            let mut long = AlignedBuf::new(0);
            let bytes = if !is_within {
                &[]
            } else if at % PAGE_BYTES + extent <= window.buffer.len() {
                window.bytes(device, segment, at, extent)?
            } else {
                long = read_range(device, offset, extent)?;
                long.get(at % PAGE_BYTES..).unwrap_or_default()
            };
            match Fragment::decode(bytes, &seal, offset) {
                Ok(fragment) => {
                    at += fragment.extent_bytes();
                    if let Fragment::Record { header, payload } = fragment {
                        show(offset, &header, payload)?;
                    }
                }
                Err(_) => at = (at + 1).next_multiple_of(PAGE_BYTES),
            }
            drop(long);
        }
        Ok(())
    }

    /// Where the record begins whose last part stands at the start of the segment `sequence`.
    ///
    /// # Errors
    /// `Io`.
    pub fn head_of(&self, sequence: u64, buffer: &mut AlignedBuf) -> Result<Option<LogOffset>> {
        let mut sequence = sequence;
        while let Some(before) = sequence.checked_sub(1)
            && let Some(segment) = self.table.by_sequence(before)
        {
            let mut last = None;
            self.fragments_of(segment, before, buffer, |offset, header, _| {
                last = Some((offset, header.starts_record, header.ends_record));
                Ok(())
            })?;
            match last {
                Some((offset, true, false)) => return Ok(Some(offset)),
                Some((_, false, false)) => sequence = before,
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    /// The `record` at `offset`, a piece at a time: it may be longer than the memory that there is.
    pub fn record_at<'a>(&'a self, offset: LogOffset, record: MovedRecord<'a>) -> RecordPieces<'a> {
        RecordPieces {
            reader: self,
            record,
            segment: offset.segment(),
            pieces: Pieces::new(offset.within_segment(), record.payload_bytes),
            from: 0,
            piece: Vec::new(),
            taken: 0,
        }
    }
}

/// Key and value of a record, as one stream of bytes.
pub struct RecordPieces<'a> {
    reader: &'a LogReader,
    record: MovedRecord<'a>,
    segment: SegmentId,
    pieces: Pieces,
    /// Bytes before the next piece.
    from: usize,
    piece: Vec<u8>,
    taken: usize,
}

impl RecordPieces<'_> {
    /// The next bytes.
    ///
    /// # Errors
    /// `Corruption` if another record stands there, or none. `Io`.
    pub fn read(&mut self, mut room: &mut [u8]) -> Result<()> {
        while !room.is_empty() {
            let rest = self.piece.get(self.taken..).unwrap_or_default();
            if rest.is_empty() {
                self.load()?;
                continue;
            }
            let len = rest.len().min(room.len());
            let (now, later) = room.split_at_mut(len);
            now.copy_from_slice(rest.get(..len).unwrap_or_default());
            self.taken += len;
            room = later;
        }
        Ok(())
    }

    fn load(&mut self) -> Result<()> {
        let (reader, piece) = (self.reader, self.pieces.next());
        let piece = piece.ok_or_else(|| Error::corruption("no record stands there"))?;
        let at = LogOffset(self.segment.offset_bytes() + u64::from(piece.within));
        let extent = fragment_bytes(piece.payload_bytes);
        let buffer = read_range(reader.home.device.as_ref(), at, extent)?;
        let bytes = buffer.get(at.0 as usize % PAGE_BYTES..).unwrap_or_default();
        let fragment = reader.fragment(at, bytes)?;
        let payload = self.record.part(&fragment, &piece, self.from)?;
        self.from += payload.len();
        (self.piece, self.taken) = (payload.to_vec(), 0);
        if !piece.is_last {
            self.segment = reader.table.following(self.segment)?;
        }
        Ok(())
    }
}

impl ReadWindow<'_> {
    /// The `len` bytes at `at` of the segment; fewer at its end.
    fn bytes(
        &mut self,
        device: &dyn Device,
        segment: SegmentId,
        at: usize,
        len: usize,
    ) -> Result<&[u8]> {
        if at < self.start || at + len > self.end {
            self.start = at - at % PAGE_BYTES;
            self.end = (self.start + self.buffer.len()).min(SEGMENT as usize);
            let room = self.buffer.get_mut(..self.end - self.start);
            let first = segment.offset_bytes() + self.start as u64;
            read_parts(device, first, room.unwrap_or_default())?;
        }
        let end = (at + len).min(self.end);
        let range = at - self.start..end - self.start;
        Ok(self.buffer.get(range).unwrap_or_default())
    }
}

/// The pages that hold the bytes.
fn read_range(device: &dyn Device, offset: LogOffset, len: usize) -> Result<AlignedBuf> {
    let before = offset.0 % PAGE_BYTES as u64;
    let mut buffer = AlignedBuf::new((before as usize + len).next_multiple_of(PAGE_BYTES));
    read_parts(device, offset.0 - before, &mut buffer)?;
    Ok(buffer)
}

fn read_parts(device: &dyn Device, first: u64, bytes: &mut [u8]) -> Result<()> {
    let parts = bytes.chunks_mut(READ_BYTES).enumerate();
    let mut reads: Vec<_> = parts
        .map(|(index, part)| Read::new(first + (index * READ_BYTES) as u64, part))
        .collect();
    device.read(&mut reads)
}
