//! The log of a volume behind the replay marker.

use std::collections::{BTreeMap, BTreeSet};

use kreon_base::{Error, Incarnation, LogOffset, Lsn, RegionId, Result, SEGMENT_BYTES, SegmentId};
use kreon_format::{
    Fragment, FragmentSeal, LOG_HEADER_BYTES, LogRecord, LogResume, LogSegmentHeader, StoreId,
    incarnation_mark, lsn_at, place_of,
};
use kreon_sim::Image;

use super::part::{Kind, Part, page_at};

/// A walk through the log.
pub struct LogWalk<'a> {
    image: &'a Image,
    store: StoreId,
    log: &'a LogRecord,
    chain: BTreeMap<u64, SegmentId>,
    resumes: std::slice::Iter<'a, LogResume>,
    incarnation: Incarnation,
    position: Lsn,
    /// What the catalogue says is durable.
    pub durable: Lsn,
    /// Whole units so far.
    pub units: usize,
    /// Key of the record that is under way, and the keys of the unit that is.
    key: Vec<u8>,
    unit: Vec<(RegionId, Vec<u8>)>,
    /// Keys written.
    pub written: BTreeSet<(RegionId, Vec<u8>)>,
}

impl<'a> LogWalk<'a> {
    /// Before the first record behind the marker. `segments` are those that the bitmap knows.
    pub fn new(
        image: &'a Image,
        store: StoreId,
        log: &'a LogRecord,
        segments: &BTreeMap<u64, SegmentId>,
    ) -> Self {
        let mut chain = segments.clone();
        if let Some(open) = log.open {
            chain.entry(open.sequence).or_insert(open.segment);
            if let Some(next) = log.next {
                chain.entry(open.sequence + 1).or_insert(next);
            }
        }
        // Those before the marker belong to log that is kept for the change feed.
        let passed = log.resumes.partition_point(|run| run.resume <= log.marker);
        let ahead = log.resumes.get(passed..).unwrap_or_default();
        let taken_over = log.resumes.last().map_or(Lsn(0), |last| last.resume);
        Self {
            image,
            store,
            log,
            chain,
            resumes: ahead.iter(),
            incarnation: log.incarnation_at_marker(),
            position: log.marker,
            durable: log.durable.max(taken_over),
            units: 0,
            key: Vec::new(),
            unit: Vec::new(),
            written: BTreeSet::new(),
        }
    }

    /// Walks to the end.
    pub fn run(&mut self, parts: &mut Vec<Part>) -> Result<()> {
        let mut last = parts.len();
        loop {
            self.take_over();
            let (sequence, _) = place_of(self.position);
            let Some(segment) = self.chain.get(&sequence).copied() else {
                break;
            };
            if !self.header(sequence, segment, parts) {
                break;
            }
            let end = lsn_at(sequence, SEGMENT_BYTES as u32);
            while self.position < end && self.fragment(sequence, segment, parts)? {
                self.take_over();
            }
            if place_of(self.position).0 == sequence {
                break;
            }
        }
        // Fragments of a unit that does not end are nobody's.
        last = last.max(parts.len() - self.dangling(parts, last));
        parts.truncate(last);
        Ok(())
    }

    /// How many of the parts from `from` on belong to a unit that is not whole.
    fn dangling(&self, parts: &[Part], from: usize) -> usize {
        let own = parts.get(from..).unwrap_or_default().iter().rev();
        let is_dangling = |part: &&Part| {
            !self.unit.is_empty()
                && part.kind == Kind::TailRecord
                && part.units_before == self.units
        };
        own.take_while(is_dangling).count()
    }

    /// The headers of the segments that the replay does not read.
    pub fn old_headers(&self, parts: &mut Vec<Part>) {
        let first = place_of(self.log.marker).0;
        for (_, segment) in self.chain.range(..first) {
            parts.push(Part::page(Kind::Header, segment.first_page()));
        }
    }

    fn take_over(&mut self) {
        while let Some(next) = self.resumes.as_slice().first()
            && next.end == self.position
        {
            self.position = next.resume;
            self.incarnation = next.incarnation;
            self.resumes.next();
        }
    }

    /// Whether the segment's header is one.
    fn header(&mut self, sequence: u64, segment: SegmentId, parts: &mut Vec<Part>) -> bool {
        let bytes = page_at(self.image, segment.first_page());
        let Ok(header) = LogSegmentHeader::decode(&bytes, self.store, segment) else {
            return false;
        };
        if header.sequence != sequence || header.incarnation > self.incarnation {
            return false;
        }
        if let Some(next) = header.next {
            self.chain.entry(sequence + 1).or_insert(next);
        }
        let part = Part {
            lsn: lsn_at(sequence, LOG_HEADER_BYTES),
            claims: header.durable,
            units_before: self.units,
            ..Part::page(Kind::TailHeader, segment.first_page())
        };
        // A segment in which one run took over from another is come to twice.
        if !parts.iter().any(|known| known.range == part.range) {
            parts.push(part);
        }
        true
    }

    /// Takes the fragment at the position; whether there is one.
    fn fragment(
        &mut self,
        sequence: u64,
        segment: SegmentId,
        parts: &mut Vec<Part>,
    ) -> Result<bool> {
        let within = place_of(self.position).1;
        let offset = LogOffset(segment.offset_bytes() + u64::from(within));
        let seal = FragmentSeal {
            store: self.store,
            sequence,
        };
        let mut start = [0; 8];
        self.image.read(offset.0, &mut start);
        let extent = kreon_format::fragment_extent(&start);
        if within as usize + extent > SEGMENT_BYTES as usize {
            return Ok(false);
        }
        let bytes = self.image.bytes(offset.0, extent);
        let fragment = match Fragment::decode(&bytes, &seal, offset) {
            Ok(fragment) if fragment.is_of(incarnation_mark(self.incarnation)) => fragment,
            _ => return Ok(false),
        };
        let (kind, claims) = match &fragment {
            Fragment::Record { .. } => (Kind::TailRecord, Lsn(0)),
            Fragment::Pad { durable, .. } => (Kind::TailPad, durable.unwrap_or_default()),
        };
        parts.push(Part {
            lsn: self.position,
            units_before: self.units,
            claims,
            ..Part::of(kind, offset.0..offset.0 + extent as u64)
        });
        self.position = Lsn(self.position.0 + extent as u64);
        if let Fragment::Record { header, payload } = fragment {
            self.key.extend_from_slice(payload);
            if header.ends_record {
                let key = self.key.get(..header.key_bytes as usize);
                let key = key.ok_or_else(|| Error::corruption("a record shorter than its key"))?;
                self.unit.push((header.region, key.to_vec()));
                self.key.clear();
            }
            if header.ends_unit {
                self.units += 1;
                self.written.extend(self.unit.drain(..));
            }
        }
        Ok(true)
    }
}
