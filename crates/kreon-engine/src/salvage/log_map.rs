//! The map from sequences to log segments, from the checkpoint, headers and neighbours' headers.

use std::collections::BTreeMap;

use kreon_base::{Lsn, SegmentId};
use kreon_format::{
    INCARNATION_MAX, LOG_SEQUENCE_MAX, LogSegmentHeader, MOVED_SEQUENCE_MIN, StoreId, lsn_at,
};

use super::source::Source;
use kreon_log::LOG_START;

/// A segment of the log.
#[derive(Clone, Copy)]
pub struct Placed {
    pub segment: SegmentId,
    /// Its header, if it verifies and has this sequence.
    pub header: Option<LogSegmentHeader>,
}

/// The map between sequences and log segments.
#[derive(Default)]
pub struct LogMap {
    by_sequence: BTreeMap<u64, Placed>,
    sequences: BTreeMap<SegmentId, u64>,
}

impl LogMap {
    /// Builds the map from segment headers and from `known`, the segments and sequences of a checkpoint. `known` takes
    /// precedence, because headers may be older.
    pub fn new(headers: &[LogSegmentHeader], known: &[(SegmentId, u64)]) -> Self {
        let mut map = Self::default();
        let is_known: BTreeMap<SegmentId, u64> = known.iter().copied().collect();
        for header in headers {
            let known = is_known.get(&header.segment);
            if known.is_none_or(|sequence| *sequence == header.sequence) {
                map.add_header(header);
            }
        }
        for (segment, sequence) in known {
            let header = map.get(*sequence).and_then(|placed| placed.header);
            let header = header.filter(|header| header.segment == *segment);
            map.put(*sequence, *segment, header);
        }
        // A neighbour's header names the segment whose own header is damaged.
        for header in headers {
            let sequences = [
                header.sequence.checked_add(1),
                header.sequence.checked_sub(1),
            ];
            for (segment, sequence) in [header.next, header.previous].into_iter().zip(sequences) {
                let Some((segment, sequence)) = segment.zip(sequence) else {
                    continue;
                };
                let is_current = map.sequences.get(&header.segment) == Some(&header.sequence);
                let is_new = !map.sequences.contains_key(&segment)
                    && !map.by_sequence.contains_key(&sequence);
                if is_current && is_new && sequence > 0 {
                    map.put(sequence, segment, None);
                }
            }
        }
        map
    }

    /// Adds a header. Of two with the same sequence, that of the later run wins.
    fn add_header(&mut self, header: &LogSegmentHeader) {
        let other = self.get(header.sequence).and_then(|placed| placed.header);
        let is_newer = other.is_none_or(|other| other.incarnation < header.incarnation);
        if is_newer && header.sequence > 0 {
            self.put(header.sequence, header.segment, Some(*header));
        }
    }

    fn put(&mut self, sequence: u64, segment: SegmentId, header: Option<LogSegmentHeader>) {
        let placed = Placed { segment, header };
        if let Some(old) = self.by_sequence.insert(sequence, placed) {
            self.sequences.remove(&old.segment);
        }
        if let Some(old) = self.sequences.insert(segment, sequence)
            && old != sequence
        {
            self.by_sequence.remove(&old);
        }
    }

    pub fn get(&self, sequence: u64) -> Option<Placed> {
        self.by_sequence.get(&sequence).copied()
    }

    pub fn sequence(&self, segment: SegmentId) -> Option<u64> {
        self.sequences.get(&segment).copied()
    }

    /// The segments of the main log from `sequence` on, in order, without those of moved records.
    pub fn from(&self, sequence: u64) -> impl Iterator<Item = (u64, Placed)> + '_ {
        self.by_sequence
            .range(sequence..MOVED_SEQUENCE_MIN)
            .map(|(sequence, placed)| (*sequence, *placed))
    }

    /// Start of the first known segment of the log.
    pub fn start(&self) -> Lsn {
        let first = self.from(0).next();
        first.map_or(LOG_START, |(first, _)| lsn_at(first, 0))
    }
}

/// The valid headers of all log segments of `store`. Reads one page of every segment.
pub fn read_headers(source: &Source, store: StoreId) -> Vec<LogSegmentHeader> {
    let headers = source
        .first_pages()
        .filter_map(|(segment, page)| LogSegmentHeader::decode(&*page?, store, segment).ok());
    // Ignores numbers that no run can have written.
    let is_possible = |header: &LogSegmentHeader| {
        (1..=LOG_SEQUENCE_MAX).contains(&header.sequence) && header.incarnation.0 <= INCARNATION_MAX
    };
    headers.filter(is_possible).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kreon_base::{Incarnation, LogId};

    fn header(
        segment: u32,
        sequence: u64,
        incarnation: u64,
        next: Option<u32>,
    ) -> LogSegmentHeader {
        LogSegmentHeader {
            store: StoreId(1),
            log: LogId(0),
            segment: SegmentId(segment),
            sequence,
            incarnation: Incarnation(incarnation),
            previous: None,
            next: next.map(SegmentId),
            durable: Lsn(0),
        }
    }

    #[test]
    fn a_neighbour_tells_where_a_segment_without_header_stands() {
        let map = LogMap::new(&[header(3, 5, 1, Some(9)), header(4, 7, 1, None)], &[]);
        assert_eq!(map.get(6).map(|placed| placed.segment), Some(SegmentId(9)));
        assert_eq!(map.sequence(SegmentId(9)), Some(6));
    }

    #[test]
    fn the_later_run_counts_and_a_checkpoint_more_than_any_header() {
        let headers = [header(3, 5, 1, None), header(4, 5, 2, None)];
        let map = LogMap::new(&headers, &[]);
        assert_eq!(map.get(5).map(|placed| placed.segment), Some(SegmentId(4)));
        assert_eq!(map.sequence(SegmentId(3)), None);
        let map = LogMap::new(&headers, &[(SegmentId(3), 5)]);
        assert_eq!(map.get(5).map(|placed| placed.segment), Some(SegmentId(3)));
        assert_eq!(map.sequence(SegmentId(4)), None);
    }
}
