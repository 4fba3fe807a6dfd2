//! The primary's side of a full copy.

use std::cmp::Ordering;

use kreon_base::{Error, Lsn, PAGE_BYTES, Result, SEGMENT_BYTES, SegmentId, planted};
use kreon_device::{AlignedBuf, Device};
use kreon_engine::{Engine, Occupied};
use kreon_format::{LOG_HEADER_BYTES, place_of};
use kreon_wire::limits::STREAM_DATA_BYTES_MAX;
use kreon_wire::{Member, StreamPacket};

use super::catching_up::{MAIN_LOG, catch_up};
use crate::mirror::{Halves, Mirror, block_border};

/// What is left to be copied to one joiner, in bytes of the volume.
#[derive(Debug)]
pub struct Resync {
    member: Member,
    /// Ranges that have space, ascending.
    backed: Vec<(u64, u64)>,
    /// Ranges to be copied, each with its length; the last one comes first.
    left: Vec<(u64, u64)>,
    /// Turns of what is to be copied and of what was written since and is owed.
    halves: Halves,
}

impl Resync {
    /// Lists what the attached `member` needs, and starts its log. All before the place where that starts is durable, so it
    /// is read from the file.
    ///
    /// # Errors
    /// `Closed`; `NotFound`: the member is gone.
    pub fn list(engine: &Engine, mirror: &Mirror, member: Member) -> Result<Self> {
        let start = block_border(engine.log_durable());
        mirror.begin_log_of(member, start)?;
        let occupied = engine.occupied()?;
        let log = log_before(&occupied, start);
        let mut left: Vec<_> = log.map(|(s, bytes)| (s.offset_bytes(), bytes)).collect();
        left.extend(pages_of(&occupied));
        left.retain(|(_, bytes)| *bytes > 0);
        left.reverse();
        let backed = occupied.backed.iter();
        Ok(Self {
            member,
            backed: backed
                .map(|(s, bytes)| (s.offset_bytes(), *bytes))
                .collect(),
            left,
            halves: Halves::default(),
        })
    }

    /// Has the joiner make space for every range that has some here: nobody will ask for it again. A joiner without that space ends its stream, or refuses.
    ///
    /// # Errors
    /// `OutOfSpace`: the joiner has no such space; `Closed`.
    pub fn reserve(&self, mirror: &Mirror) -> Result<()> {
        planted!(BackedSegmentsLeftOut => return Ok(()));
        for (offset, len_bytes) in &self.backed {
            mirror.reserve_at(self.member, *offset, *len_bytes)?;
        }
        Ok(())
    }

    /// Bytes that are left to be copied.
    pub fn left_bytes(&self) -> u64 {
        self.left.iter().map(|(_, bytes)| bytes).sum()
    }

    /// Reads the next piece, up to 64 KiB, from `below`, the primary's file, and sends it; `false` if nothing is left. A piece
    /// that is written meanwhile is sent again by that write, before or after: the joiner keeps the newer bytes. What the
    /// joiner's stream had no room for when it was written comes in between.
    ///
    /// # Errors
    /// Those of the device; why the joiner's stream has ended; `Closed`.
    pub fn copy(&mut self, mirror: &Mirror, below: &dyn Device) -> Result<bool> {
        mirror.check_stream(self.member)?;
        let is_owing = mirror.is_owing(self.member)?;
        if is_owing && (self.left.is_empty() || !self.halves.may_copy(true)) {
            let fed = mirror.feed(self.member, below)?;
            self.halves.sent_other(fed);
            return Ok(true);
        }
        let Some((offset, left)) = self.left.pop() else {
            return Ok(false);
        };
        let len_bytes = left.min(u64::from(STREAM_DATA_BYTES_MAX));
        if left > len_bytes {
            self.left.push((offset + len_bytes, left - len_bytes));
        }
        let whole = len_bytes.next_multiple_of(PAGE_BYTES as u64) as usize;
        let mut bytes = AlignedBuf::new(whole);
        below.read_at(offset, &mut bytes)?;
        let packet = StreamPacket::Copy {
            offset,
            bytes: &bytes,
        };
        mirror.ship_to(self.member, &packet)?;
        self.halves.copied(len_bytes);
        Ok(true)
    }

    /// Ends the copy: brings the joiner to where the primary is now, and lets it count. From then on the primary waits for it.
    /// When this returns its volume is whole, and durable: it may be added to the configuration. If that fails for good, or
    /// this does, it is to be removed here.
    ///
    /// Takes as long as the joiner is slower than what is written, without a bound: nobody is slowed down for it. The caller
    /// ends it from another thread by [`Mirror::remove`] or [`Mirror::end`]. Afterwards it waits for a checkpoint, for which
    /// the primary waits as for every member that counts; if the joiner's stream ends meanwhile it counts no more at once, and
    /// this fails. A joiner that takes nothing and whose link does not end is to be removed by whoever looks for silence.
    ///
    /// # Errors
    /// `InvalidArgument`: something is left to be copied; `OutOfSpace`: the joiner's device is full; why its stream has ended;
    /// those of a checkpoint.
    pub fn complete(&self, engine: &Engine, mirror: &Mirror, below: &dyn Device) -> Result<()> {
        if !self.left.is_empty() {
            return Err(Error::invalid("a copy is not complete"));
        }
        loop {
            catch_up(engine, mirror, below, self.member)?;
            // A superblock must not arrive before what it points at is durable there.
            mirror.flush_member(self.member)?;
            if mirror.try_count(self.member)? {
                break;
            }
        }
        engine.checkpoint()?;
        // A store without changes makes no checkpoint: the superblock that counts is sent.
        mirror.fill_slots(self.member, below)?;
        mirror.barrier()?;
        mirror.end_trial(self.member)
    }
}

/// The segments of all logs, each with the bytes that are in use when the main log ends at `end`.
pub fn log_before(occupied: &Occupied, end: Lsn) -> impl Iterator<Item = (SegmentId, u64)> {
    let (sequence, within) = place_of(end);
    occupied.log.iter().map(move |log| {
        let bytes = match (log.log == MAIN_LOG, log.sequence.cmp(&sequence)) {
            (false, _) => log.bytes,
            // Not what the allocator tells of a segment: that can lag behind what the log has written.
            (true, Ordering::Less) => SEGMENT_BYTES,
            (true, Ordering::Equal) if within > LOG_HEADER_BYTES => within.into(),
            // Reserved, or opened without a record: the header goes with the first one.
            (true, Ordering::Equal | Ordering::Greater) => 0,
        };
        (log.segment, bytes)
    })
}

/// Ranges of pages that are in use, those that work under way has taken and the heads of groups included.
fn pages_of(occupied: &Occupied) -> impl Iterator<Item = (u64, u64)> {
    let pages = occupied.pages.iter();
    pages.map(|(first, count)| (first.offset_bytes(), count * PAGE_BYTES as u64))
}

#[cfg(test)]
mod tests {
    use kreon_engine::OccupiedLog;
    use kreon_format::lsn_at;

    use super::*;

    #[test]
    fn a_segment_reserved_behind_a_log_that_ends_on_its_border_is_not_in_use() {
        let of = |sequence: u64| OccupiedLog {
            segment: SegmentId(sequence as u32),
            log: MAIN_LOG,
            sequence,
            bytes: SEGMENT_BYTES,
        };
        let occupied = Occupied {
            log: vec![of(5), of(6), of(7)],
            ..Occupied::default()
        };
        let bytes = |end| log_before(&occupied, end).map(|(_, bytes)| bytes);
        let border = lsn_at(6, LOG_HEADER_BYTES);
        assert!(bytes(border).eq([SEGMENT_BYTES, 0, 0]));
        assert!(bytes(lsn_at(6, 5000)).eq([SEGMENT_BYTES, 5000, 0]));
    }
}
