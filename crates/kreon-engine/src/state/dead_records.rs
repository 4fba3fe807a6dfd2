//! Records of the log that no tree points at any more, as far as known: collection passes over them without a lookup.
//!
//! One bit for each line of 64 bytes of a segment, set when a merge that dropped the entry of the record which starts in
//! that line is durable. Shorter records may share a line and have no bit. Nothing of this is on the device: after an
//! opening nothing is known, and what does not fit into the memory is not known either. A record without a bit is looked
//! up in the trees.
//!
//! Invariant: a bit is set only for a record that is not the newest of its key and never will be again.

use std::collections::BTreeMap;
use std::sync::Arc;

use kreon_base::{LogOffset, SEGMENT_BYTES, SegmentId, planted};
use kreon_sync::Mutex;

/// Bytes of the log for each bit.
const LINE_BYTES: usize = 64;

/// Words of the bits of a segment.
const WORDS: usize = SEGMENT_BYTES as usize / LINE_BYTES / u64::BITS as usize;

/// What a segment takes, with its place in the table.
const SEGMENT_BITS_BYTES: usize = 8 * WORDS + 64;

/// The bits of one segment.
#[derive(Clone)]
pub struct DeadLines {
    sequence: u64,
    count: u32,
    words: Arc<[u64; WORDS]>,
}

/// Most segments that go for others at a time: to find each takes a look at all.
const REPLACED_MAX: usize = 64;

/// Dead records by segment.
pub struct DeadRecords {
    segments_max: usize,
    segments: Mutex<BTreeMap<SegmentId, DeadLines>>,
}

/// Whether a record that takes so many bytes where it starts has a bit.
pub fn has_bit(extent_bytes: usize) -> bool {
    extent_bytes >= LINE_BYTES
}

impl DeadRecords {
    /// Nothing is known. Takes at most `bytes`.
    pub fn new(bytes: usize) -> Self {
        Self {
            segments_max: bytes / SEGMENT_BITS_BYTES,
            segments: Mutex::default(),
        }
    }

    /// The records at `offsets`, which are sorted, are dead. `sequence_of` tells the sequence of a segment that has records.
    pub fn note(&self, offsets: &[LogOffset], sequence_of: impl Fn(SegmentId) -> Option<u64>) {
        let mut by_segment: Vec<_> = offsets
            .chunk_by(|one, next| one.segment() == next.segment())
            .collect();
        // Those with the most first: who does not find room leaves none to those behind.
        by_segment.sort_unstable_by_key(|of_one| std::cmp::Reverse(of_one.len()));
        let mut segments = self.segments.lock();
        let mut replaceable = REPLACED_MAX;
        for of_one in by_segment {
            let Some(segment) = of_one.first().map(|offset| offset.segment()) else {
                continue;
            };
            let Some(sequence) = sequence_of(segment) else {
                continue;
            };
            let known = segments.get(&segment);
            if known.is_none_or(|known| known.sequence != sequence) {
                let count = of_one.len() as u32;
                let has_room = known.is_some() || segments.len() < self.segments_max;
                if !has_room {
                    if replaceable == 0 || !replace_fewest(&mut segments, count) {
                        replaceable = 0;
                        continue;
                    }
                    replaceable -= 1;
                }
                segments.insert(segment, DeadLines::new(sequence));
            }
            if let Some(lines) = segments.get_mut(&segment) {
                lines.set(of_one);
            }
        }
    }

    /// What is known of the segment that is number `sequence` of its log.
    pub fn of(&self, segment: SegmentId, sequence: u64) -> Option<DeadLines> {
        let segments = self.segments.lock();
        let known = segments.get(&segment)?;
        planted!(DeadRecordsOfEarlierUse => return Some(known.clone()));
        (known.sequence == sequence).then(|| known.clone())
    }

    /// The segment is used for something else.
    pub fn forget(&self, segment: SegmentId) {
        planted!(DeadRecordsOfEarlierUse => return);
        self.segments.lock().remove(&segment);
    }
}

/// Makes room for another segment with `count` dead records: the one with the fewest goes, if it has fewer. False if there
/// is no room.
fn replace_fewest(segments: &mut BTreeMap<SegmentId, DeadLines>, count: u32) -> bool {
    let fewest = segments.iter().min_by_key(|(_, lines)| lines.count);
    match fewest.map(|(segment, lines)| (*segment, lines.count)) {
        Some((segment, least)) if least < count => segments.remove(&segment).is_some(),
        _ => false,
    }
}

impl DeadLines {
    fn new(sequence: u64) -> Self {
        Self {
            sequence,
            count: 0,
            words: Arc::new([0; WORDS]),
        }
    }

    /// Whether the record at `offset`, which takes so many bytes where it starts, is known to be dead.
    pub fn has(&self, offset: LogOffset, extent_bytes: usize) -> bool {
        let (word, bit) = place(offset);
        has_bit(extent_bytes) && self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    fn set(&mut self, offsets: &[LogOffset]) {
        // A round of collection may hold the bits.
        let words = Arc::make_mut(&mut self.words);
        for offset in offsets {
            let (word, bit) = place(*offset);
            if let Some(word) = words.get_mut(word) {
                self.count += u32::from(*word & bit == 0);
                *word |= bit;
            }
        }
    }
}

fn place(offset: LogOffset) -> (usize, u64) {
    let line = offset.within_segment() as usize / LINE_BYTES;
    (line / u64::BITS as usize, 1 << (line % u64::BITS as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(segment: u32, within: u64) -> LogOffset {
        LogOffset(SegmentId(segment).offset_bytes() + within)
    }

    fn first(_: SegmentId) -> Option<u64> {
        Some(1)
    }

    #[test]
    fn exactly_what_was_noted_of_this_use_of_a_segment_is_dead() {
        let dead = DeadRecords::new(10 * SEGMENT_BITS_BYTES);
        dead.note(&[at(3, 4096), at(3, SEGMENT_BYTES - 64), at(4, 128)], first);
        let lines = dead.of(SegmentId(3), 1).unwrap();
        for within in (0..SEGMENT_BYTES).step_by(64) {
            let is_dead = within == 4096 || within == SEGMENT_BYTES - 64;
            assert_eq!(lines.has(at(3, within), 64), is_dead, "{within}");
            assert!(!lines.has(at(3, within), 56), "it may share its line");
        }
        assert!(dead.of(SegmentId(3), 2).is_none(), "of a later use");
        dead.note(&[at(3, 640)], |_| Some(2));
        let lines = dead.of(SegmentId(3), 2).unwrap();
        assert!(lines.has(at(3, 640), 64) && !lines.has(at(3, 4096), 64));
        dead.forget(SegmentId(4));
        assert!(dead.of(SegmentId(4), 1).is_none());
        dead.note(&[at(5, 640)], |_| None);
        assert!(dead.of(SegmentId(5), 1).is_none());
    }

    #[test]
    fn the_segments_with_the_most_dead_records_stay_within_the_memory() {
        let dead = DeadRecords::new(4 * SEGMENT_BITS_BYTES);
        for segment in [3, 1, 4, 2, 6, 5] {
            let offsets: Vec<_> = (0..segment)
                .map(|i| at(segment, 64 * u64::from(i)))
                .collect();
            dead.note(&offsets, first);
        }
        let known = (1..=6).filter(|segment| dead.of(SegmentId(*segment), 1).is_some());
        assert_eq!(known.collect::<Vec<_>>(), [3, 4, 5, 6]);
        let none = DeadRecords::new(SEGMENT_BITS_BYTES - 1);
        none.note(&[at(1, 0)], first);
        assert!(none.of(SegmentId(1), 1).is_none());
    }
}
