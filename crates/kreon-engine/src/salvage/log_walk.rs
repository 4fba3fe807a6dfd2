//! A walk through the log that continues behind damage.

use std::ops::Range;

use kreon_base::{LogOffset, Lsn, PAGE_BYTES, Result, SEGMENT_BYTES};
use kreon_device::{AlignedBuf, BLOCK_BYTES_MIN};
use kreon_format::{
    Fragment, FragmentClaim, FragmentSeal, LOG_HEADER_BYTES, RECORD_ALIGN_BYTES, RecordKind,
    StoreId, claimed_fragment, fragment_extent, lsn_at, place_of,
};

use super::log_map::{LogMap, Placed};
use super::log_runs::{Expected, Recorded, Runs};
use super::source::Source;
use kreon_log::{Found, ReplayRecord, SEGMENT, Units, WHOLE_UNIT_BYTES_MAX};

/// A stretch of the log without whole records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    /// Its start: the beginning of the incomplete unit.
    pub from: Lsn,
    /// Its end: the next valid fragment.
    pub to: Lsn,
    /// It is where one run took over from another, so it may be a torn tail that was never durable.
    pub is_seam: bool,
}

/// The result of a walk besides its records.
#[derive(Default)]
pub struct Walked {
    pub holes: Vec<Hole>,
    /// The durable LSN, as claimed by pads and headers.
    pub durable: Lsn,
    /// The end of the last whole unit.
    pub end: Lsn,
    /// The position where the walk stopped. The bytes from `end` up to here hold no whole unit.
    pub stopped: Lsn,
    /// LSN of the last record of a load; the load may have replaced values written before it.
    pub loaded: Lsn,
    /// Number of whole records of units that may begin in a hole.
    pub cut_records: u64,
}

/// The log of a damaged store.
#[derive(Clone, Copy)]
pub struct LogAt<'a> {
    pub source: &'a Source,
    pub store: StoreId,
    pub map: &'a LogMap,
    pub runs: Runs<'a>,
}

/// Calls `visit` for every record of a whole unit in `range`, in order, except for values of loads, which are valid only
/// through their trees, and notices for the change feed. Damage at or behind `durable` is the end of the log, not a hole.
///
/// # Errors
/// Those of `visit`.
pub fn walk(
    log: LogAt<'_>,
    range: Range<Lsn>,
    durable: Lsn,
    mut visit: impl FnMut(ReplayRecord<'_>) -> Result<()>,
) -> Result<Walked> {
    let mut walk = Walk {
        log,
        until: range.end,
        durable,
        position: range.start,
        expected: Expected::FIRST,
        hole: None,
        is_skipping: false,
        units: Units::new(usize::MAX),
        walked: Walked::default(),
    };
    let mut loaded = Lsn(0);
    walk.run(&mut |record| match record.kind {
        RecordKind::Ingested | RecordKind::Loaded => {
            loaded = record.lsn;
            Ok(())
        }
        RecordKind::DropRegion | RecordKind::Followed => Ok(()),
        _ => visit(record),
    })?;
    walk.walked.loaded = loaded;
    Ok(walk.finish())
}

/// Walks through `range` only for the holes and the durable LSN.
pub fn examine(log: LogAt<'_>, range: Range<Lsn>) -> Result<Walked> {
    walk(log, range, Lsn::MAX, |_| Ok(()))
}

struct Walk<'a> {
    log: LogAt<'a>,
    until: Lsn,
    durable: Lsn,
    position: Lsn,
    expected: Expected,
    /// Start of the current hole.
    hole: Option<Lsn>,
    /// Skips records up to the end of the next unit: that unit may have begun in a hole.
    is_skipping: bool,
    units: Units,
    walked: Walked,
}

/// The current segment.
struct Image<'b> {
    bytes: &'b [u8],
    placed: Placed,
    seal: FragmentSeal,
}

impl Image<'_> {
    fn offset(&self, within: u32) -> LogOffset {
        LogOffset(self.placed.segment.offset_bytes() + u64::from(within))
    }

    fn rest(&self, within: u32) -> &[u8] {
        self.bytes.get(within as usize..).unwrap_or_default()
    }

    fn is_blank(&self, range: Range<u32>) -> bool {
        let bytes = self.bytes.get(range.start as usize..range.end as usize);
        bytes.is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0))
    }

    fn decode(&self, within: u32) -> Option<Fragment<'_>> {
        Fragment::decode(self.rest(within), &self.seal, self.offset(within)).ok()
    }
}

type Visit<'v> = &'v mut dyn FnMut(ReplayRecord<'_>) -> Result<()>;

impl Walk<'_> {
    fn run(&mut self, visit: Visit<'_>) -> Result<()> {
        let segments: Vec<_> = self.log.map.from(place_of(self.position).0).collect();
        let mut buffer = AlignedBuf::new(SEGMENT_BYTES as usize);
        for (sequence, placed) in segments {
            let start = lsn_at(sequence, LOG_HEADER_BYTES);
            if start >= self.until {
                break;
            }
            if lsn_at(sequence, SEGMENT) <= self.position || !self.takes(sequence, &placed) {
                continue;
            }
            if self.position < start {
                if !self.enter_hole() {
                    return Ok(());
                }
                self.is_skipping = true;
                self.position = start;
            }
            self.log.source.segment(placed.segment, &mut buffer);
            let seal = FragmentSeal {
                store: self.log.store,
                sequence,
            };
            let image = Image {
                bytes: &buffer,
                placed,
                seal,
            };
            if !self.segment(&image, visit)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Whether the segment is part of the log, and not a remainder that an earlier run left behind its end.
    fn takes(&mut self, sequence: u64, placed: &Placed) -> bool {
        let start = lsn_at(sequence, LOG_HEADER_BYTES);
        let at = self.position.max(start);
        let expected = match self.log.runs.recorded(at) {
            Some(Recorded::By(expected, _)) => expected,
            Some(Recorded::Nobody(_)) => return true,
            None => {
                let Runs::Guessed(map, newest) = self.log.runs else {
                    return true;
                };
                Runs::guessed(map, newest, sequence, self.expected)
            }
        };
        let Some(header) = placed.header else {
            self.expected = expected;
            return true;
        };
        let lowest = match self.log.runs {
            Runs::Recorded(_) => expected.lowest,
            Runs::Guessed(..) => self.expected.lowest,
        };
        let is_older = at == start && header.incarnation.0 < lowest;
        if is_older || !expected.allows_header(header.incarnation) {
            return false;
        }
        self.expected = expected;
        self.walked.durable = self.walked.durable.max(header.durable);
        true
    }

    /// Walks through one segment; returns whether to continue behind it.
    fn segment(&mut self, image: &Image<'_>, visit: Visit<'_>) -> Result<bool> {
        let end = lsn_at(image.seal.sequence, SEGMENT);
        while self.position < end.min(self.until) {
            let mut run_end = Lsn::MAX;
            match self.log.runs.recorded(self.position) {
                Some(Recorded::Nobody(resume)) => {
                    self.next_run(resume);
                    continue;
                }
                Some(Recorded::By(expected, end)) => (self.expected, run_end) = (expected, end),
                None => {}
            }
            let within = place_of(self.position).1;
            let before = self.expected.lowest;
            let fragment = image.decode(within).filter(|fragment| {
                self.position.0 + fragment.extent_bytes() as u64 <= run_end.0
                    && self.expected.accept(fragment)
            });
            match fragment {
                Some(fragment) => {
                    self.leave_hole(image, before);
                    self.take(image, within, &fragment, visit)?;
                }
                None if !self.skip_damage(image, within, run_end.min(self.until)) => {
                    return Ok(false);
                }
                None => {}
            }
        }
        self.forgive_blank_end(image);
        Ok(true)
    }

    /// Drops a hole of zeroes, shorter than a page, that ends at a page border at the bound of the walk: the next run
    /// may have taken over there, with nothing written in between.
    fn forgive_blank_end(&mut self, image: &Image<'_>) {
        let Some(from) = self.hole.filter(|_| self.position == self.until) else {
            return;
        };
        let (start, last) = (place_of(from), place_of(Lsn(self.position.0 - 1)));
        let end = last.1 + 1;
        let is_border = end.is_multiple_of(PAGE_BYTES as u32);
        if !is_border || start.0 != last.0 || end - start.1 >= PAGE_BYTES as u32 {
            return;
        }
        if image.is_blank(start.1..end) {
            self.hole = None;
        }
    }

    /// Skips to `resume`, where the next run took over.
    fn next_run(&mut self, resume: Lsn) {
        if let Some(from) = self.hole.take().or(self.units.incomplete()) {
            self.push_hole(from, self.position, false);
        }
        self.units = Units::new(usize::MAX);
        self.is_skipping = false;
        self.position = resume;
    }

    fn take(
        &mut self,
        image: &Image<'_>,
        within: u32,
        fragment: &Fragment<'_>,
        visit: Visit<'_>,
    ) -> Result<()> {
        let extent = fragment.extent_bytes();
        let behind = Lsn(self.position.0 + extent as u64);
        let fits = match fragment {
            Fragment::Pad { durable, .. } => {
                self.walked.durable = self.walked.durable.max(durable.unwrap_or(Lsn(0)));
                !self.units.is_in_record()
            }
            Fragment::Record { header, .. } if self.is_skipping => {
                self.walked.cut_records += u64::from(header.starts_record);
                self.is_skipping = !header.ends_unit;
                true
            }
            Fragment::Record { header, payload } => {
                let found = Found {
                    lsn: self.position,
                    offset: image.offset(within),
                    header: *header,
                    payload,
                    fills_segment: extent == image.rest(within).len(),
                };
                let fits = self.units.add(&found, &mut |record| visit(record))?.is_ok();
                self.is_skipping = !fits && !header.ends_unit;
                fits
            }
        };
        if !fits {
            let from = self.units.incomplete().unwrap_or(self.position);
            self.units = Units::new(usize::MAX);
            self.push_hole(from, behind, false);
        }
        self.position = behind;
        Ok(())
    }

    /// Skips to the next valid fragment in the segment, or to its end. Returns false at the end of the log.
    fn skip_damage(&mut self, image: &Image<'_>, within: u32, run_end: Lsn) -> bool {
        let is_first = self.hole.is_none();
        let was_whole = self.units.incomplete().is_none() && !self.is_skipping;
        if !self.enter_hole() {
            return false;
        }
        let last = (u64::from(within) + run_end.0.saturating_sub(self.position.0))
            .min(u64::from(SEGMENT)) as u32;
        let next = self.next_fragment(image, within, last);
        // A header whose length leads exactly to the next fragment is most likely intact; it tells whether a unit
        // ended here.
        let claim = claimed_fragment(image.rest(within)).filter(|claim| {
            let extent = fragment_extent(image.rest(within).first_chunk().unwrap_or(&[0; 8]));
            is_first
                && next < last
                && self.expected.allows(claim)
                && within as usize + extent == next as usize
        });
        self.is_skipping = match claim {
            Some(FragmentClaim::Record(header)) => !header.ends_unit,
            Some(FragmentClaim::Pad(_)) if was_whole => {
                // A damaged pad lost no record.
                self.hole = None;
                false
            }
            _ => true,
        };
        self.position = Lsn(self.position.0 + u64::from(next - within));
        true
    }

    /// The next valid fragment of the run behind `within` and before `end`; `end` if there is none.
    fn next_fragment(&self, image: &Image<'_>, within: u32, end: u32) -> u32 {
        let starts = (within..end).step_by(RECORD_ALIGN_BYTES).skip(1);
        let is_fragment = |at: &u32| {
            let rest = image.rest(*at);
            let Some(start) = rest.first_chunk().filter(|start| **start != [0; 8]) else {
                return false;
            };
            let extent = fragment_extent(start);
            // Plausibility first, because checksums over random bytes are expensive.
            let makes_sense = claimed_fragment(rest).is_some_and(|claim| {
                let is_likely = match claim {
                    FragmentClaim::Record(_) => true,
                    FragmentClaim::Pad(_) => {
                        let ends_block =
                            (*at as usize + extent).is_multiple_of(BLOCK_BYTES_MIN as usize);
                        ends_block && extent <= WHOLE_UNIT_BYTES_MAX
                    }
                };
                is_likely && self.expected.allows(&claim)
            });
            extent <= rest.len() && makes_sense && image.decode(*at).is_some()
        };
        starts.into_iter().find(is_fragment).unwrap_or(end)
    }

    /// Begins a hole at the current unit. Returns false if this is the end of the log.
    fn enter_hole(&mut self) -> bool {
        if self.hole.is_some() {
            return true;
        }
        let from = self.units.incomplete().unwrap_or(self.position);
        if from >= self.durable {
            return false;
        }
        self.units = Units::new(usize::MAX);
        self.hole = Some(from);
        true
    }

    /// Ends the hole, if any, at a valid fragment. `before` is the lowest run that was possible before it.
    fn leave_hole(&mut self, image: &Image<'_>, before: u64) {
        let Some(from) = self.hole.take() else {
            return;
        };
        let bytes = self.position.0 - from.0;
        if self.expected.lowest > before {
            // A run makes the log that it found durable before it writes.
            self.walked.durable = self.walked.durable.max(self.position);
        }
        let is_border = place_of(self.position).1.is_multiple_of(PAGE_BYTES as u32);
        let is_seam = is_border && bytes < PAGE_BYTES as u64 && self.expected.lowest > before;
        if is_seam {
            // A run starts with a new unit.
            self.is_skipping = false;
            if image.is_blank(place_of(from).1..place_of(self.position).1) {
                return;
            }
        }
        self.push_hole(from, self.position, is_seam);
    }

    fn push_hole(&mut self, from: Lsn, to: Lsn, is_seam: bool) {
        self.walked.holes.push(Hole { from, to, is_seam });
    }

    fn finish(mut self) -> Walked {
        let end = self
            .hole
            .or(self.units.incomplete())
            .unwrap_or(self.position);
        let durable = self.durable.min(self.until);
        // Up to a known bound the log must exist; without a bound, this is its end.
        if end < durable && durable != Lsn::MAX {
            self.push_hole(end, durable, false);
        }
        self.walked.end = end;
        self.walked.stopped = self.position;
        self.walked
    }
}
