//! Appending: a reservation without a lock, one copy, checksums over the copy, commit. The paper
//! measured its log lock at half of the insert time (`Kreon 4.2.1`).
//!
//! Invariant: a thread that holds a reservation waits for nothing before it has committed it. A thread that waits for the
//! gapless committed prefix therefore waits only for threads that copy bytes.

use std::sync::Arc;

use kreon_base::{Lsn, Result};
use kreon_device::{Reservation, Reserve};
use kreon_format::{LOG_PAYLOAD_BYTES, fragment_bytes};

use super::buffered::Buffered;
use super::buffers::Buffers;
use super::cut::WHOLE_UNIT_BYTES_MAX;
use super::framing::{Framing, Part};
use super::output::{LOOK_BYTES, LogOutput};
use super::poison::Poison;
use super::record::{NewRecord, Place, purpose_of, unit_bytes};
use super::roll::Roller;
use super::spanning;

/// Appends units to the current segment, and opens the next where it is full.
pub(super) struct Appender {
    pub buffers: Arc<Buffers>,
    pub framing: Framing,
    pub output: Arc<LogOutput>,
    pub poison: Arc<Poison>,
    pub roller: Roller,
}

impl Appender {
    /// See [`Log::append`](super::Log::append).
    #[inline]
    pub fn append(&self, unit: &[NewRecord<'_>], mut placed: impl FnMut(Place)) -> Result<Lsn> {
        let bytes = unit_bytes(unit)?;
        self.poison.check()?;
        if bytes == 0 {
            return Ok(self.buffers.tail());
        }
        loop {
            if bytes <= LOG_PAYLOAD_BYTES as usize {
                let current = self.buffers.current();
                if let Reserve::Reserved(room) = current.buffer().reserve(bytes as u32) {
                    let end = room.end();
                    self.fill(&current, room, unit, &mut placed);
                    let tail = current.lsn(end);
                    if (end - bytes as u32) / LOOK_BYTES != end / LOOK_BYTES {
                        self.output.keep_pace(tail, bytes as u64);
                    }
                    return Ok(tail);
                }
            }
            if bytes <= WHOLE_UNIT_BYTES_MAX {
                self.roller.roll_for(bytes, purpose_of(unit))?;
                continue;
            }
            let (roller, framing) = (&self.roller, &self.framing);
            if let Some(end) = spanning::append(roller, framing, unit, bytes, &mut placed)? {
                self.output.keep_pace(end, bytes as u64);
                return Ok(end);
            }
        }
    }

    /// Fills `room` with `unit`, which fits exactly.
    #[inline]
    fn fill(
        &self,
        buffered: &Buffered,
        room: Reservation<'_>,
        unit: &[NewRecord<'_>],
        placed: &mut impl FnMut(Place),
    ) {
        let mut rest = Some(room);
        for (index, record) in unit.iter().enumerate() {
            let Some(room) = rest.take() else { return };
            let is_last = index + 1 == unit.len();
            let payload_bytes = record.payload_bytes();
            let mine = if is_last {
                room
            } else {
                let (mine, behind) = room.split_at(fragment_bytes(payload_bytes) as u32);
                rest = Some(behind);
                mine
            };
            let part = Part {
                record,
                from: 0,
                payload_bytes,
                ends_unit: is_last,
            };
            placed(self.framing.put(buffered, mine, &part));
        }
    }
}
