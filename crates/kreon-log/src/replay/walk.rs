//! From fragment to fragment and segment to segment, up to the end of the log.

use std::collections::BTreeMap;

use kreon_base::{
    Error, Incarnation, LogOffset, Lsn, PAGE_BYTES, PageBytes, PageNo, Result, SegmentId, planted,
};
use kreon_format::{
    Fragment, FragmentSeal, LogResume, LogSegmentHeader, RECORD_ALIGN_BYTES, StoreId,
    incarnation_mark, lsn_at, place_of,
};

use super::newer;
use super::source::{Loaded, Source};
use super::start::ReplayStart;
use super::units::{Found, ReplayRecord, Units};
use crate::cut::{PAYLOAD_START, SEGMENT};
use crate::history::{resume_behind, split_runs};
use kreon_volume::page_io::{is_there, read_pages};

/// A replay under way.
pub(super) struct Walk<'a> {
    pub start: &'a ReplayStart<'a>,
    pub source: Source<'a>,
    /// Segments by sequence: those that the checkpoint knew, and those that valid headers name.
    pub chain: BTreeMap<u64, SegmentId>,
    /// Where runs took over from others, those not reached yet.
    resumes: std::slice::Iter<'a, LogResume>,
    /// The run that wrote the records here.
    incarnation: Incarnation,
    /// Everything before this was acknowledged: as the checkpoint says, and then the log itself.
    durable: Lsn,
    /// Nothing is read from here on.
    until: Lsn,
    pub units: Units,
    position: Lsn,
}

/// A segment in memory.
pub(super) struct Image {
    pub segment: SegmentId,
    pub sequence: u64,
    pub bytes: Loaded,
}

impl Image {
    pub fn load(source: &mut Source<'_>, segment: SegmentId, sequence: u64) -> Result<Self> {
        let bytes = source.segment(segment)?;
        Ok(Self {
            segment,
            sequence,
            bytes,
        })
    }

    pub fn offset(&self, within: u32) -> LogOffset {
        LogOffset(self.segment.offset_bytes() + u64::from(within))
    }

    pub fn rest(&self, within: u32) -> &[u8] {
        self.bytes.get(within as usize..).unwrap_or_default()
    }

    /// The fragment at `within`.
    pub fn decode(&self, within: u32, store: StoreId) -> Result<Fragment<'_>> {
        let seal = FragmentSeal {
            store,
            sequence: self.sequence,
        };
        Fragment::decode(self.rest(within), &seal, self.offset(within))
    }
}

/// Why the walk stops.
struct Stop {
    /// Something that does not verify.
    at: Lsn,
    why: Error,
}

impl<'a> Walk<'a> {
    pub fn new(start: &'a ReplayStart<'a>, source: Source<'a>) -> Self {
        let record = start.record;
        // A run wrote only when everything before its start was durable; everything before the end of an image was
        // durable before the image.
        let taken_over = record.resumes.last().map_or(Lsn(0), |last| last.resume);
        let needed = record.image.iter().map(|part| part.needed).max();
        let from = start.from();
        let (incarnation, ahead) = split_runs(record.incarnation, &record.resumes, from);
        Self {
            start,
            source,
            chain: start.chain(),
            resumes: ahead.iter(),
            incarnation,
            durable: record.durable.max(taken_over).max(needed.unwrap_or(Lsn(0))),
            until: Lsn::MAX,
            units: Units::new(start.value_bytes_max),
            position: from,
        }
    }

    /// Stops at `until`; everything before was acknowledged.
    pub fn up_to(self, until: Lsn) -> Self {
        Self {
            durable: self.durable.max(until),
            until,
            ..self
        }
    }

    /// Walks; returns where the last whole unit ends.
    pub fn run(&mut self, visit: &mut impl FnMut(ReplayRecord<'_>) -> Result<()>) -> Result<Lsn> {
        loop {
            self.take_over();
            if self.position >= self.until {
                return Ok(self.position);
            }
            let (sequence, _) = place_of(self.position);
            let Some(segment) = self.chain.get(&sequence).copied() else {
                let why = Error::corruption(format!("no segment has number {sequence}"));
                return self.end(self.stop(why), None);
            };
            let mut image = Image::load(&mut self.source, segment, sequence)?;
            newer::check_header(&image, self.start)?;
            let mut stop = self.through(&image, visit)?;
            if let Some(stop_here) = &stop
                && !self.is_blank(&image, stop_here)?
            {
                // The device may have read it wrong, once: the log must not end there because of that.
                self.source.recycle(image.bytes);
                image.bytes = self.source.segment(segment)?;
                stop = self.through(&image, visit)?;
            }
            if let Some(stop) = stop {
                return self.end(stop, Some(image));
            }
            self.source.recycle(image.bytes);
        }
    }

    /// Everything before is known to have been durable.
    pub fn durable(&self) -> Lsn {
        self.durable
    }

    /// The bits of the run that its fragments carry.
    pub fn mark(&self) -> u16 {
        incarnation_mark(self.incarnation)
    }

    fn stop(&self, why: Error) -> Stop {
        let at = self.position;
        Stop { at, why }
    }

    /// Whether only zeroes stand where the walk stops. The device is asked again, as for any other end.
    fn is_blank(&self, image: &Image, stop: &Stop) -> Result<bool> {
        let within = match place_of(stop.at).1 {
            PAYLOAD_START => 0,
            within => within as usize,
        };
        let is_blank = |bytes: &[u8]| {
            let here = bytes.iter().take(RECORD_ALIGN_BYTES);
            here.into_iter().all(|byte| *byte == 0)
        };
        let page = PageNo(image.segment.first_page().0 + (within / PAGE_BYTES) as u64);
        let is_there = is_there(self.start.device, page);
        if !is_blank(image.bytes.get(within..).unwrap_or_default()) || !is_there {
            return Ok(!is_there);
        }
        let again = read_pages(self.start.device, &[page])?;
        let rest = again.first()?.get(within % PAGE_BYTES..);
        Ok(is_blank(rest.unwrap_or_default()))
    }

    /// Walks through a segment, its header first.
    fn through(
        &mut self,
        image: &Image,
        visit: &mut impl FnMut(ReplayRecord<'_>) -> Result<()>,
    ) -> Result<Option<Stop>> {
        match self.header(image) {
            Ok(()) => self.segment(image, visit),
            Err(why) => Ok(Some(Stop {
                at: lsn_at(image.sequence, PAYLOAD_START),
                why,
            })),
        }
    }

    /// Skips the bytes between the end of one run and the start of the next.
    fn take_over(&mut self) {
        while let Some(next) = self.resumes.as_slice().first()
            && next.end == self.position
            && self.units.incomplete().is_none()
        {
            self.position = next.resume;
            self.incarnation = next.incarnation;
            self.resumes.next();
        }
    }

    /// Checks the header of the segment, and learns what it tells.
    fn header(&mut self, image: &Image) -> Result<()> {
        let header = decode_header(image, self.start)?;
        let begins_here = self.position == lsn_at(image.sequence, PAYLOAD_START);
        let is_of_run = header.incarnation == self.incarnation
            || !begins_here && header.incarnation < self.incarnation;
        if !is_of_run {
            let (found, expected) = (header.incarnation, self.incarnation);
            return Err(Error::corruption(format!(
                "its header is of {found}, not of {expected}"
            )));
        }
        if let Some(next) = header.next {
            let next = *self.chain.entry(image.sequence + 1).or_insert(next);
            self.source.read_ahead(next);
        }
        self.durable = self.durable.max(header.durable);
        Ok(())
    }

    /// Walks through one segment from the position on. `None`: to its end, or to where a run took over
    /// in another segment.
    fn segment(
        &mut self,
        image: &Image,
        visit: &mut impl FnMut(ReplayRecord<'_>) -> Result<()>,
    ) -> Result<Option<Stop>> {
        let end = lsn_at(image.sequence, SEGMENT).min(self.until);
        while self.position < end {
            match self.fragment(image, visit)? {
                Ok(extent) => self.position = Lsn(self.position.0 + extent as u64),
                Err(why) => return Ok(Some(self.stop(why))),
            }
            self.take_over();
        }
        Ok(None)
    }

    /// Takes the fragment at the position; returns its length.
    fn fragment(
        &mut self,
        image: &Image,
        visit: &mut impl FnMut(ReplayRecord<'_>) -> Result<()>,
    ) -> Result<Result<usize>> {
        let within = place_of(self.position).1;
        let fragment = match image.decode(within, self.start.store) {
            Ok(fragment) => fragment,
            Err(why) => return Ok(Err(why)),
        };
        let offset = image.offset(within);
        let wrong = |what: &str| Ok(Err(Error::corruption(format!("{what} at {offset}"))));
        if !fragment.is_of(self.mark()) {
            return wrong("a record of another run");
        }
        let extent = fragment.extent_bytes();
        let end = Lsn(self.position.0 + extent as u64);
        let next = self.resumes.as_slice().first();
        if next.is_some_and(|next| end > next.end) {
            return wrong("a record over the end of its run");
        }
        match fragment {
            Fragment::Pad { .. } if self.units.is_in_record() => {
                return wrong("filler in a record");
            }
            Fragment::Pad { durable, .. } => {
                self.durable = self.durable.max(durable.unwrap_or(Lsn(0)));
            }
            Fragment::Record { header, payload } => {
                let found = Found {
                    lsn: self.position,
                    offset,
                    header,
                    payload,
                    fills_segment: extent == image.rest(within).len(),
                };
                if let Err(what) = self.units.add(&found, visit)? {
                    return wrong(what);
                }
            }
        }
        Ok(Ok(extent))
    }

    /// Decides whether what stopped the walk is the end of the log or damage.
    fn end(&mut self, stop: Stop, image: Option<Image>) -> Result<Lsn> {
        let damaged = |durable: Lsn| {
            let (sequence, within) = place_of(stop.at);
            stop.why.within(format!(
                "the log is damaged at {} (byte {within} of its segment number {sequence}), but \
                 was durable up to {durable}",
                stop.at
            ))
        };
        let end = self.units.incomplete().unwrap_or(self.position);
        planted!(DamageTakenForEnd => return Ok(end));
        if stop.at < self.durable {
            return Err(damaged(self.durable));
        }
        self.check_resume(end, image.as_ref())?;
        if let Some(image) = image
            && let Some(durable) = self.claim_beyond(stop.at, image)?
        {
            return Err(damaged(durable));
        }
        Ok(end)
    }

    /// No run has gone on behind `end`. `image` is that of the segment where the walk stopped.
    fn check_resume(&mut self, end: Lsn, image: Option<&Image>) -> Result<()> {
        let resume = resume_behind(end);
        let sequence = place_of(resume).0;
        if let Some(image) = image.filter(|image| image.sequence == sequence) {
            return newer::check_resume(image, resume, self.start);
        }
        let Some(segment) = self.chain.get(&sequence).copied() else {
            return Ok(());
        };
        let image = Image::load(&mut self.source, segment, sequence)?;
        newer::check_resume(&image, resume, self.start)?;
        self.source.recycle(image.bytes);
        Ok(())
    }
}

/// The header of a segment, if it is the one that should stand there.
pub(super) fn decode_header(image: &Image, start: &ReplayStart<'_>) -> Result<LogSegmentHeader> {
    let missing = || Error::corruption("a segment without a first page");
    let page: &PageBytes = image.bytes.first_chunk().ok_or_else(missing)?;
    let header = LogSegmentHeader::decode(page, start.store, image.segment)?;
    if header.log != start.record.id || header.sequence != image.sequence {
        return Err(Error::corruption(format!(
            "{} holds number {} of {}, not number {} of {}",
            image.segment, header.sequence, header.log, image.sequence, start.record.id
        )));
    }
    Ok(header)
}
