//! Reading from the open log.
//!
//! A record whose segment is still in memory is read there, all others through the mapping or, for garbage collection,
//! straight from the device.

use kreon_base::{LogOffset, Result, SegmentId};
use kreon_device::AlignedBuf;
use kreon_format::{Fragment, FragmentHeader};
use kreon_mapping::FinalBytes;

use super::device_reads::{DeviceReads, RecordPieces};
use super::log::Log;
use super::moved_record::MovedRecord;
use super::pages::LogPages;
use super::read::ValueAt;
use super::take_value::TakeValue;

impl Log {
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
        self.fragments().with_value(pages, at, take)
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
        self.fragments().read_value_into(pages, at, value)
    }

    /// Reads and verifies the record `at`, one fragment at a time: takes the memory of one.
    ///
    /// # Errors
    /// `Corruption` if that record does not stand there.
    pub fn check_value(&self, pages: &impl LogPages, at: &ValueAt<'_>) -> Result<()> {
        self.fragments().check_value(pages, at)
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
        self.fragments().read_part(pages, at, position, part)
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
        self.fragments().read_key(pages, offset, key_bytes, key)
    }

    /// How many bytes of which segments a record takes, in the order of the log. Costs no I/O.
    pub fn charges(
        &self,
        offset: LogOffset,
        key_bytes: u32,
        value_bytes: u32,
    ) -> impl Iterator<Item = (SegmentId, u32)> + '_ {
        self.fragments().charges(offset, key_bytes, value_bytes)
    }

    /// Calls `f` with the fragment at `offset`, which takes `extent` bytes of the log.
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
        self.fragments()
            .with_fragment(pages, offset, extent, scratch, f)
    }

    /// The fragment at the start of `bytes`, which stand at `offset`.
    ///
    /// # Errors
    /// `Corruption`.
    pub fn fragment<'a>(&self, offset: LogOffset, bytes: &'a [u8]) -> Result<Fragment<'a>> {
        self.fragments().decode(offset, bytes)
    }

    /// The bytes on the device of a record at `offset` with so many bytes of key and value, without those in
    /// other segments. `None`: the record is read in memory, because its segment is not on the device
    /// or only in part, or not at all, because the segment is not of the log.
    pub fn on_device(&self, offset: LogOffset, payload_bytes: usize) -> Option<FinalBytes> {
        self.fragments().on_device(offset, payload_bytes)
    }

    /// Sequence of a segment in its stream; none: it holds no records.
    pub fn sequence_of(&self, segment: SegmentId) -> Option<u64> {
        self.fragments().table().sequence(segment)
    }

    /// The segment with this sequence.
    pub(super) fn segment_with(&self, sequence: u64) -> Option<SegmentId> {
        self.fragments().table().by_sequence(sequence)
    }

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
        let reads = self.device_reads();
        reads.fragments_of(segment, sequence, buffer, show)
    }

    /// Where the record begins whose last part stands at the start of the segment `sequence`.
    ///
    /// # Errors
    /// `Io`.
    pub fn head_of(&self, sequence: u64, buffer: &mut AlignedBuf) -> Result<Option<LogOffset>> {
        self.device_reads().head_of(sequence, buffer)
    }

    /// The `record` at `offset`, a piece at a time: it may be longer than the memory that there is.
    pub fn record_at<'a>(&'a self, offset: LogOffset, record: MovedRecord<'a>) -> RecordPieces<'a> {
        self.device_reads().record_at(offset, record)
    }

    fn device_reads(&self) -> DeviceReads<'_> {
        DeviceReads {
            device: self.home().device.as_ref(),
            fragments: self.fragments(),
        }
    }
}
