//! The segments of the log: the sequence of each, and the one that follows it.

use kreon_sync::{AtomicU32, AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::sync::OnceLock;

use kreon_base::{Error, LogOffset, Result, SegmentId};
use kreon_sync::Mutex;

/// Slots of the first chunk; each further chunk has twice as many as the one before.
const FIRST_CHUNK_SLOTS: u64 = 1 << FIRST_CHUNK_BITS;
const FIRST_CHUNK_BITS: u32 = 10;

/// Enough chunks for every `u32`.
const CHUNKS: usize = 23;

/// The segment table of a log. Readers look a segment up with two loads and no lock: slots stand in
/// chunks that never move. 16 bytes for each segment of the volume.
#[derive(Default)]
pub(super) struct SegmentTable {
    chunks: [OnceLock<Box<[Slot]>>; CHUNKS],
    /// The same, by sequence. Serialises changes.
    by_sequence: Mutex<BTreeMap<u64, SegmentId>>,
}

#[derive(Default)]
struct Slot {
    /// Sequence of the segment; 0: not of this log (sequences start at 1).
    sequence: AtomicU64,
    /// The segment behind it; 0: none yet (segment 0 holds the superblock).
    next: AtomicU32,
}

impl SegmentTable {
    pub fn new(segments: &[(SegmentId, u64)]) -> Self {
        let table = Self::default();
        for (segment, sequence) in segments {
            table.insert(*segment, *sequence);
        }
        table
    }

    pub fn insert(&self, segment: SegmentId, sequence: u64) {
        let mut by_sequence = self.by_sequence.lock();
        by_sequence.insert(sequence, segment);
        let following = by_sequence.get(&(sequence + 1));
        let slot = self.slot_for(segment);
        slot.next
            .store(following.map_or(0, |next| next.0), Ordering::Release);
        slot.sequence.store(sequence, Ordering::Release);
        if let Some(previous) = by_sequence.get(&sequence.wrapping_sub(1)) {
            self.slot_for(*previous)
                .next
                .store(segment.0, Ordering::Release);
        }
    }

    /// Forgets a segment; whether it was there.
    pub fn remove(&self, segment: SegmentId) -> bool {
        let mut by_sequence = self.by_sequence.lock();
        let slot = self.slot_for(segment);
        let sequence = slot.sequence.swap(0, Ordering::AcqRel);
        slot.next.store(0, Ordering::Release);
        if let Some(previous) = by_sequence.get(&sequence.wrapping_sub(1)) {
            self.slot_for(*previous).next.store(0, Ordering::Release);
        }
        by_sequence.remove(&sequence).is_some()
    }

    /// Sequence of a segment of the log.
    pub fn sequence(&self, segment: SegmentId) -> Option<u64> {
        let sequence = self.slot(segment)?.sequence.load(Ordering::Acquire);
        (sequence != 0).then_some(sequence)
    }

    /// The segment behind `segment`.
    pub fn next(&self, segment: SegmentId) -> Option<SegmentId> {
        let next = self.slot(segment)?.next.load(Ordering::Acquire);
        (next != 0).then_some(SegmentId(next))
    }

    /// The same for a segment that a record goes on behind.
    ///
    /// # Errors
    /// `Corruption`: there is none.
    pub fn following(&self, segment: SegmentId) -> Result<SegmentId> {
        self.next(segment)
            .ok_or_else(|| Error::corruption(format!("nothing follows {segment} in the log")))
    }

    /// Sequence of the segment that `offset` is in.
    ///
    /// # Errors
    /// `Corruption`: it is not of the log.
    pub fn sequence_at(&self, offset: LogOffset) -> Result<u64> {
        let segment = offset.segment();
        self.sequence(segment)
            .ok_or_else(|| Error::corruption(format!("{segment} is not of the log")))
    }

    /// All segments with their sequences, in the order of the log.
    pub fn list(&self) -> Vec<(SegmentId, u64)> {
        self.by_sequence
            .lock()
            .iter()
            .map(|(sequence, segment)| (*segment, *sequence))
            .collect()
    }

    pub fn by_sequence(&self, sequence: u64) -> Option<SegmentId> {
        self.by_sequence.lock().get(&sequence).copied()
    }

    fn slot(&self, segment: SegmentId) -> Option<&Slot> {
        let (chunk, index) = position(segment);
        self.chunks.get(chunk)?.get()?.get(index)
    }

    fn slot_for(&self, segment: SegmentId) -> &Slot {
        let (chunk, index) = position(segment);
        let slots = self.chunks[chunk].get_or_init(|| {
            (0..FIRST_CHUNK_SLOTS << chunk)
                .map(|_| Slot::default())
                .collect()
        });
        &slots[index]
    }
}

/// Chunk and index in it; in range for every id.
fn position(segment: SegmentId) -> (usize, usize) {
    let number = u64::from(segment.0) + FIRST_CHUNK_SLOTS;
    let chunk = number.ilog2() - FIRST_CHUNK_BITS;
    (
        chunk as usize,
        (number - (FIRST_CHUNK_SLOTS << chunk)) as usize,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_dense_and_in_range() {
        assert_eq!(position(SegmentId(0)), (0, 0));
        assert_eq!(position(SegmentId(1023)), (0, 1023));
        assert_eq!(position(SegmentId(1024)), (1, 0));
        assert_eq!(position(SegmentId(1024 + 2047)), (1, 2047));
        assert_eq!(position(SegmentId(1024 + 2048)), (2, 0));
        assert!(position(SegmentId(u32::MAX)).0 < CHUNKS);
    }

    #[test]
    fn neighbours_are_linked_in_any_order_of_insertion() {
        let table =
            SegmentTable::new(&[(SegmentId(9), 3), (SegmentId(2), 1), (SegmentId(5000), 2)]);
        assert_eq!(table.next(SegmentId(2)), Some(SegmentId(5000)));
        assert_eq!(table.next(SegmentId(5000)), Some(SegmentId(9)));
        assert_eq!(table.next(SegmentId(9)), None);
        assert_eq!(table.sequence(SegmentId(9)), Some(3));
        assert_eq!(table.sequence(SegmentId(77)), None);
        assert_eq!(table.sequence(SegmentId(1_000_000)), None);
    }

    #[test]
    fn a_removed_segment_can_come_back_with_another_sequence() {
        let table = SegmentTable::new(&[(SegmentId(4), 1), (SegmentId(5), 2)]);
        assert!(table.remove(SegmentId(4)));
        assert!(!table.remove(SegmentId(4)));
        assert_eq!(table.sequence(SegmentId(4)), None);
        table.insert(SegmentId(4), 3);
        assert_eq!(table.next(SegmentId(5)), Some(SegmentId(4)));
        assert_eq!(table.list(), [(SegmentId(5), 2), (SegmentId(4), 3)]);
    }
}
