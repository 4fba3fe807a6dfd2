//! The segment that an opened log goes on in: the tail segment of the run before, or a new one.

use kreon_base::{Error, ErrorKind, Lsn, Result, SegmentId};
use kreon_device::AppendBuffer;
use kreon_format::place_of;
use kreon_volume::Purpose;

use super::buffered::{Buffered, ChainLink};
use super::cut::PAYLOAD_START;
use super::home::LogHome;
use super::roll::open_segment;
use super::segments::SegmentTable;
use super::supply::Supply;

/// A segment that no volume has.
const NOWHERE: SegmentId = SegmentId(u32::MAX);

/// Where a log goes on.
#[derive(Clone, Copy)]
pub(super) struct Resume {
    pub lsn: Lsn,
    pub sequence: u64,
    pub within: u32,
}

impl Resume {
    pub fn at(lsn: Lsn) -> Self {
        let (sequence, within) = place_of(lsn);
        Self {
            lsn,
            sequence,
            within,
        }
    }

    /// The segment is begun anew.
    pub fn is_fresh(self) -> bool {
        self.within == PAYLOAD_START
    }

    /// Sequence of the first segment behind those that hold records.
    pub fn next_sequence(self) -> u64 {
        self.sequence + u64::from(!self.is_fresh())
    }

    /// Bytes of the segment that are on the device.
    pub fn written_bytes(self) -> u32 {
        match self.is_fresh() {
            true => 0,
            false => self.within,
        }
    }

    /// The end of a log that is only read, in `buffer`: nothing can be appended. A segment that would be begun anew is none
    /// of the volume, and no reader finds it.
    ///
    /// # Errors
    /// `Corruption` if the segment is unknown.
    pub fn stand(
        self,
        home: &LogHome,
        table: &SegmentTable,
        buffer: AppendBuffer,
    ) -> Result<Buffered> {
        let segment = match self.is_fresh() {
            true => NOWHERE,
            false => self.segment(home, table)?,
        };
        buffer.set_limit(self.within);
        let link = ChainLink {
            segment,
            sequence: self.sequence,
            next: NOWHERE,
            was_written: false,
        };
        Ok(Buffered::new(link, buffer, &[], self.within))
    }

    /// The segment that holds records already.
    fn segment(self, home: &LogHome, table: &SegmentTable) -> Result<SegmentId> {
        let sequence = self.sequence;
        table.by_sequence(sequence).ok_or_else(|| {
            Error::corruption(format!(
                "{} ends in its segment number {sequence}, which is unknown",
                home.log
            ))
        })
    }

    /// Opens the segment in `buffer`.
    ///
    /// # Errors
    /// `OutOfSpace` if no segment can be had; `Corruption` if the one to go on in is unknown.
    pub fn open(
        self,
        home: &LogHome,
        table: &SegmentTable,
        supply: &Supply,
        buffer: AppendBuffer,
    ) -> Result<Buffered> {
        if self.is_fresh() {
            supply.reserve(2, Purpose::Maintenance)?;
            buffer.set_limit(supply.back_next(0, Purpose::Maintenance)?);
            let open = |link| open_segment(home, table, link, buffer, self.lsn);
            return supply.take_next(open);
        }
        let (sequence, within) = (self.sequence, self.within);
        let segment = self.segment(home, table)?;
        let limit = home
            .space
            .back(segment, (within, within), Purpose::Maintenance);
        let limit = match limit {
            // Only what frees space has to be written on a full volume, and it asks again.
            Err(error) if error.kind() == ErrorKind::OutOfSpace => within,
            limit => limit?,
        };
        buffer.set_limit(limit);
        supply.reserve(1, Purpose::Maintenance)?;
        let link = ChainLink {
            segment,
            sequence,
            next: supply.next()?,
            was_written: false,
        };
        Ok(Buffered::new(link, buffer, &[], within))
    }
}
