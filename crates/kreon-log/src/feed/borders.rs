//! Where a feed may begin.

use std::sync::Arc;

use kreon_base::{Error, ErrorKind, Incarnation, Lsn, PageBytes, Result};
use kreon_format::{LogSegmentHeader, RECORD_ALIGN_BYTES, lsn_at, place_of};
use kreon_sync::{AtomicU64, Ordering};
use kreon_volume::page_io::read_pages;

use super::LogFeed;
use super::cursor::Cursor;
use super::window::segment_of;
use crate::cut::PAYLOAD_START;
use crate::history::LOG_START;
use crate::log::Log;

/// How often segments may be given up while they are looked at.
const TRIES_MAX: u32 = 8;

/// That there is no feed from `position` on any more, but from `first`.
pub fn not_kept(position: Lsn, first: Lsn) -> Error {
    Error::new(
        ErrorKind::NotFound,
        format!(
            "position {} is not kept any more; the oldest one is {}",
            position.0, first.0
        ),
    )
}

/// What `find` finds, if the log gives up no segment meanwhile.
fn again_if_gone<T>(mut find: impl FnMut() -> Result<T>) -> Result<T> {
    for _ in 1..TRIES_MAX {
        match find() {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            outcome => return outcome,
        }
    }
    find()
}

fn is_damage(error: &Error) -> bool {
    error.kind() == ErrorKind::Corruption
}

/// The borders of an open log.
pub struct Borders {
    log: Arc<Log>,
    /// The first of all.
    followed_from: Lsn,
    /// Segments from this sequence on, as far as they are kept, were found to be of a run that is known.
    known_from: AtomicU64,
    /// The last one that was found.
    last: AtomicU64,
}

impl Borders {
    /// Of `log`, which was just opened, from `followed_from` on; that and `last` are two of them.
    pub fn new(log: &Arc<Log>, followed_from: Lsn, last: Lsn) -> Self {
        let (known, within) = place_of(log.runs_known_from());
        Self {
            log: Arc::clone(log),
            followed_from,
            known_from: AtomicU64::new(known + u64::from(within > PAYLOAD_START)),
            last: AtomicU64::new(last.0),
        }
    }

    /// The oldest one that the log keeps, at or before `until`, before which everything is durable.
    ///
    /// # Errors
    /// `Corruption`, `Io`; `NotFound` if the log gives up segments meanwhile.
    pub fn first(&self, until: Lsn) -> Result<Lsn> {
        again_if_gone(|| self.oldest(until))
    }

    fn oldest(&self, until: Lsn) -> Result<Lsn> {
        let kept = self.oldest_kept(until)?;
        Ok(kept.max(self.followed_from).min(until))
    }

    fn oldest_kept(&self, until: Lsn) -> Result<Lsn> {
        let (oldest, last) = (self.oldest_segment(until)?, place_of(until).0);
        let known = self.log.runs_known_from();
        let is_within = place_of(known).0 + 1 == oldest && self.is_kept(oldest - 1);
        if is_within || oldest > last {
            // The runs of the first records of that segment are not known.
            return Ok(known);
        }
        if lsn_at(oldest, PAYLOAD_START) <= LOG_START {
            return Ok(LOG_START);
        }
        for sequence in oldest..=last {
            match self.first_from(sequence, until) {
                Ok(Some(found)) => return Ok(found),
                // A unit so long that it has no end in this segment.
                Ok(None) => {}
                // Nobody but a feed needs what is damaged.
                Err(error) if is_damage(&error) && sequence < last => {}
                Err(error) => return Err(error),
            }
        }
        let last = self.last().max(known);
        if last < until {
            segment_of(&self.log, place_of(last).0)?;
        }
        Ok(last)
    }

    /// The last one at or before `until`.
    ///
    /// # Errors
    /// As [`first`](Self::first).
    pub fn last_before(&self, until: Lsn) -> Result<Lsn> {
        let last = again_if_gone(|| {
            let mut last = self.near(until, self.oldest(until)?)?;
            self.walk(last, until, |border| last = border)?;
            Ok(last)
        })?;
        self.last.fetch_max(last.0, Ordering::AcqRel);
        Ok(last)
    }

    /// A feed from the border `from` on.
    ///
    /// # Errors
    /// `NotFound`: it is older than the oldest one. `InvalidArgument`: it is none, or behind `until`. As [`first`](Self::first).
    pub fn feed(&self, from: Lsn, until: Lsn) -> Result<LogFeed> {
        if from > until && from <= self.log.found_end() {
            // A reader does not know that this is durable, but an earlier feed of the writer may have shown it.
            return Ok(LogFeed::new(&self.log, from));
        }
        if from > until {
            return Err(Error::invalid(format!(
                "position {} lies ahead of the end, {}",
                from.0, until.0
            )));
        }
        match again_if_gone(|| self.is_border(from, until)) {
            Ok(true) => Ok(LogFeed::new(&self.log, from)),
            Ok(false) => Err(Error::invalid(format!(
                "position {} lies within a batch or record; positions come from the feed",
                from.0
            ))),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(not_kept(from, self.first(until)?))
            }
            Err(error) => Err(error),
        }
    }

    /// Whether a feed may begin at `from`.
    ///
    /// # Errors
    /// `NotFound`: it is older than the oldest border, or its segment was given up meanwhile.
    fn is_border(&self, from: Lsn, until: Lsn) -> Result<bool> {
        let first = self.oldest(until)?;
        if from <= first || !from.0.is_multiple_of(RECORD_ALIGN_BYTES as u64) {
            return match from < first {
                true => Err(not_kept(from, first)),
                false => Ok(from == first),
            };
        }
        let near = self.near(from, first)?;
        let mut is_border = near == from;
        self.walk(near, from, |border| is_border |= border == from)?;
        Ok(is_border)
    }

    fn last(&self) -> Lsn {
        Lsn(self.last.load(Ordering::Acquire))
    }

    /// A border before `until` and not far from it; `first` is the oldest one.
    fn near(&self, until: Lsn, first: Lsn) -> Result<Lsn> {
        let (last, sequence) = (self.last(), place_of(until).0);
        if first <= last && last <= until && place_of(last).0 + 1 >= sequence {
            return Ok(last);
        }
        for segment in (place_of(first).0 + 1..=sequence).rev() {
            match self.first_from(segment, until) {
                Ok(Some(found)) => return Ok(found),
                Ok(None) => {}
                Err(error) if is_damage(&error) && segment < sequence => {}
                Err(error) => return Err(error),
            }
        }
        Ok(first)
    }

    fn is_kept(&self, sequence: u64) -> bool {
        self.log.reader().table.by_sequence(sequence).is_some()
    }

    /// The first border in a segment behind the end of a unit there, or where a run took over.
    fn first_from(&self, sequence: u64, until: Lsn) -> Result<Option<Lsn>> {
        let mut cursor = Cursor::new(&self.log, lsn_at(sequence, PAYLOAD_START));
        loop {
            if cursor.take_over() {
                let is_there = cursor.position <= until;
                return Ok(is_there.then_some(cursor.position));
            }
            if place_of(cursor.position).0 != sequence {
                return Ok(None);
            }
            match cursor.step(until)? {
                None => return Ok(None),
                Some(step) if step.header.is_some_and(|header| header.ends_unit) => {
                    return Ok(Some(cursor.position));
                }
                Some(_) => {}
            }
        }
    }

    /// Tells every border behind `from`, which is one, up to `until`.
    fn walk(&self, from: Lsn, until: Lsn, mut tell: impl FnMut(Lsn)) -> Result<()> {
        let (mut cursor, mut is_in_unit) = (Cursor::new(&self.log, from), false);
        loop {
            if !is_in_unit && cursor.take_over() && cursor.position <= until {
                tell(cursor.position);
            }
            let Some(step) = cursor.step(until)? else {
                return Ok(());
            };
            is_in_unit = match step.header {
                Some(header) => !header.ends_unit,
                None => is_in_unit,
            };
            if !is_in_unit {
                tell(cursor.position);
            }
        }
    }

    /// The sequence of the oldest segment from which on none is missing, and of all whose records it is known which run wrote
    /// them: of a run that nothing is known of, the log may end anywhere. Behind that of `until` if not even that is so.
    fn oldest_segment(&self, until: Lsn) -> Result<u64> {
        let is_whole = |sequence| Ok(self.is_kept(sequence) && self.is_known(sequence)?);
        // It may not be begun yet.
        let last = place_of(until).0;
        let mut oldest = match self.is_kept(last) {
            true => last + 1,
            false => last,
        };
        while oldest > 0 && is_whole(oldest - 1)? {
            oldest -= 1;
        }
        Ok(oldest)
    }

    /// Whether the run is known that began the segment.
    fn is_known(&self, sequence: u64) -> Result<bool> {
        if sequence >= self.known_from.load(Ordering::Acquire) {
            return Ok(true);
        }
        let (incarnation, _) = self.log.runs_from(lsn_at(sequence, PAYLOAD_START));
        let is_known = self.began(sequence)? == Some(incarnation);
        if is_known {
            // They are asked from the newest to the oldest.
            self.known_from.fetch_min(sequence, Ordering::AcqRel);
        }
        Ok(is_known)
    }

    /// The run that began the segment, as its header says; none if that is damaged.
    fn began(&self, sequence: u64) -> Result<Option<Incarnation>> {
        let segment = segment_of(&self.log, sequence)?;
        let home = self.log.home();
        let read = read_pages(home.device.as_ref(), &[segment.first_page()])?;
        let page: &PageBytes = read.first()?;
        let header = LogSegmentHeader::decode(page, home.store, segment);
        // What was read is that of something else if the segment was given up meanwhile.
        segment_of(&self.log, sequence)?;
        Ok(header.ok().map(|header| header.incarnation))
    }
}
