//! Scans: ordered walks over a region at a snapshot, from both ends.
//!
//! A scan reads ahead in steps that grow from a few entries to many, and reads the records of a step at queue depth, so
//! that a short scan does not pay for values that it does not show. Values are shown in place. Between two pairs a scan
//! holds only its snapshot: its read-ahead is valid for one view, and after a change of view each key is looked up
//! again. So an idle scan keeps no page from being reused.

use std::ops::Bound;
use std::sync::Arc;

use arc_swap::Guard;
use kreon_base::{Attributes, Codec, Error, KEY_BYTES_MAX, Result, planted};
use kreon_format::fragment_bytes;

use super::Reader;
use super::ahead::Ahead;
use super::batch::{Found, Pair};
use super::get::of_value;
use super::key_bounds::KeyBounds;
use super::merge_scan::{self, Step};
use super::scan_memory::ScanShare;
use super::scan_pair::{ShowPair, TakePair, WithKey};
use super::scan_rest::{Edge, Rest};
use super::scan_source::Located;
use crate::compression::{self, Unpack};
use crate::keys::Direction;
use crate::level::ResidentLog;
use crate::level::log_source::FetchedLog;
use crate::regions::RegionState;
use crate::visibility::OpenSnapshot;
use kreon_log::{TakeValue, ValueAt};
use kreon_sync::Ordering;

/// The first step where frames are plenty: many scans are for the first pair alone.
const FIRST_STEP_ENTRIES: usize = 1;

/// The least of all other steps.
const STEP_ENTRIES_MIN: usize = 16;
const STEP_ENTRIES_MAX: usize = 512;
const STEP_BYTES_MAX: usize = 1 << 20;

/// The same where records come into memory of the scan's own: as many as keep a device busy.
const FETCHED_ENTRIES_MAX: usize = 128;
const FETCHED_BYTES_MAX: usize = 256 << 10;

/// Blocks of the device of memory that a step takes for each pair, beside the pair.
const ENTRY_BLOCKS: usize = 4;

/// A scan of more pairs credits nothing: one pass over everything is no reason to lay values together.
const LONG_PAIRS: usize = 1000;

/// How many pairs ahead of the one that is shown a record is brought from memory towards the processor.
const HINT_PAIRS: usize = 2;

/// A scan of a range of keys at a snapshot.
pub struct Scan {
    reader: Arc<Reader>,
    region: Arc<RegionState>,
    snapshot: Arc<OpenSnapshot>,
    /// What neither end has fetched yet.
    rest: Rest,
    /// Fetched from the front, ascending, and from the back, descending: by [`Direction`].
    ends: [Ahead; 2],
    step_entries: usize,
    /// Pairs that may be shown from the beginning on, or from a seek on.
    most: usize,
    /// Pairs of these that may still be shown.
    left: usize,
    /// Pairs that were found so far, since the last seek.
    found: usize,
    with_values: bool,
}

impl Scan {
    /// A scan of `bounds`; without values it reads no log.
    pub fn new(
        reader: &Arc<Reader>,
        region: &Arc<RegionState>,
        snapshot: Arc<OpenSnapshot>,
        bounds: KeyBounds,
    ) -> Self {
        Self {
            reader: Arc::clone(reader),
            region: Arc::clone(region),
            snapshot,
            rest: Rest::new(bounds),
            ends: Default::default(),
            step_entries: FIRST_STEP_ENTRIES,
            most: usize::MAX,
            left: usize::MAX,
            found: 0,
            with_values: true,
        }
    }

    /// The same scan without values: they come out empty and the log is not read. Before the first
    /// pair is taken.
    pub fn without_values(&mut self) {
        self.with_values = false;
    }

    /// The same scan, ended after `pairs` pairs from both ends together, which a seek counts anew. It reads at once what it
    /// will show, and nothing else. Before the first pair is taken.
    pub fn limit(&mut self, pairs: usize) {
        self.most = pairs;
        self.begin();
    }

    /// Counts pairs and steps anew.
    fn begin(&mut self) {
        (self.left, self.found) = (self.most, 0);
        self.step_entries = match self.most {
            usize::MAX => FIRST_STEP_ENTRIES,
            most => most.clamp(1, STEP_ENTRIES_MAX),
        };
    }

    /// Lets the end that goes in `way` go on at `key`, or at the first key behind it, within the bounds of the scan; the
    /// other end stays where it is. Reads nothing: what was found ahead from `key` on is kept, else the next step looks it
    /// up. After an error it does nothing.
    pub fn seek(&mut self, way: Direction, key: &[u8]) {
        let (own, other) = (way as usize, 1 - way as usize);
        if self.ends[own].seek(key, way) {
            self.left = self.most;
            return;
        }
        // Pairs of the other end that this one took are its own.
        let position = match self.ends[own].batch.taken_last() {
            Some(key) => Some(Edge::At(Bound::Excluded(key.to_vec()))),
            None => self.ends[other].position(),
        };
        self.rest.seek(way, key, position);
        for ahead in &mut self.ends {
            ahead.clear();
            ahead.start = None;
        }
        self.begin();
    }

    /// Shows the next pair from the front.
    ///
    /// # Errors
    /// Of reading; the scan ends with the first.
    pub fn next_with<R>(&mut self, show: impl FnOnce(&[u8], &[u8]) -> R) -> Result<Option<R>> {
        self.next_pair(ShowPair(show))
    }

    /// Shows the next pair from the back.
    ///
    /// # Errors
    /// Of reading; the scan ends with the first.
    pub fn next_back_with<R>(&mut self, show: impl FnOnce(&[u8], &[u8]) -> R) -> Result<Option<R>> {
        self.next_back_pair(ShowPair(show))
    }

    /// Hands the next pair from the front to `take`.
    ///
    /// # Errors
    /// Of reading; the scan ends with the first.
    pub fn next_pair<T: TakePair>(&mut self, take: T) -> Result<Option<T::Taken>> {
        self.next_from(Direction::Forward, take)
    }

    /// Hands the next pair from the back to `take`.
    ///
    /// # Errors
    /// Of reading; the scan ends with the first.
    pub fn next_back_pair<T: TakePair>(&mut self, take: T) -> Result<Option<T::Taken>> {
        self.next_from(Direction::Backward, take)
    }

    fn next_from<T: TakePair>(&mut self, way: Direction, take: T) -> Result<Option<T::Taken>> {
        self.reader.storage.lifecycle.check_home()?;
        self.try_next(way, take).inspect_err(|_| self.fail())
    }

    fn try_next<T: TakePair>(&mut self, way: Direction, take: T) -> Result<Option<T::Taken>> {
        let (own, other) = (way as usize, 1 - way as usize);
        if self.ends[own].batch.is_empty() {
            self.fetch(way)?;
        }
        if self.left == 0 {
            return Ok(self.end());
        }
        let shown = match self.ends[own].batch.pop_first() {
            Some(pair) => self.show(&self.ends[own], &pair, take)?,
            // This end has reached what the other one fetched.
            None => match self.ends[other].batch.pop_last() {
                Some(pair) => self.show(&self.ends[other], &pair, take)?,
                None => return Ok(self.end()),
            },
        };
        self.left -= 1;
        Ok(Some(shown))
    }

    /// Hands the pair to `take` that the end that goes in `way` takes next.
    ///
    /// # Errors
    /// Of reading; the scan ends with the first.
    pub fn peek_pair<T: TakePair>(&mut self, way: Direction, take: T) -> Result<Option<T::Taken>> {
        self.reader.storage.lifecycle.check_home()?;
        self.try_peek(way, take).inspect_err(|_| self.fail())
    }

    fn try_peek<T: TakePair>(&mut self, way: Direction, take: T) -> Result<Option<T::Taken>> {
        self.look_ahead(way)?;
        match self.coming(way) {
            Some((ahead, pair)) => self.show(ahead, pair, take).map(Some),
            None => Ok(None),
        }
    }

    /// What is kept beside the value of the pair that the end that goes in `way` takes next. Reads no value that was not
    /// read ahead.
    ///
    /// # Errors
    /// Of reading; the scan ends with the first.
    pub fn peek_attributes(&mut self, way: Direction) -> Result<Option<Attributes>> {
        self.reader.storage.lifecycle.check_home()?;
        self.look_ahead(way).inspect_err(|_| self.fail())?;
        Ok(self.coming(way).map(|(_, pair)| pair.attributes()))
    }

    fn look_ahead(&mut self, way: Direction) -> Result<()> {
        match self.ends[way as usize].batch.is_empty() {
            true => self.fetch(way),
            false => Ok(()),
        }
    }

    /// The pair that the end that goes in `way` takes next, of those that were found ahead.
    fn coming(&self, way: Direction) -> Option<(&Ahead, &Pair)> {
        if self.left == 0 {
            return None;
        }
        let [own, other] = [&self.ends[way as usize], &self.ends[1 - way as usize]];
        let found = own.batch.nth(0).map(|pair| (own, pair));
        // This end may have reached what the other one fetched.
        found.or_else(|| Some((other, other.batch.back()?)))
    }

    /// A read failed: the scan ends, and its memory goes back with the account of it.
    fn fail(&mut self) {
        self.ends = Default::default();
        self.rest.end();
        (self.most, self.left) = (0, 0);
    }

    /// The memory of what it has found ahead.
    #[cfg(test)]
    pub fn memory_bytes(&self) -> usize {
        self.ends.iter().map(Ahead::memory_bytes).sum()
    }

    /// There is no more to show: what it held goes back.
    fn end<R>(&mut self) -> Option<R> {
        self.ends.iter_mut().for_each(Ahead::end);
        None
    }

    /// Hands a pair that was found `ahead` to `take`.
    fn show<T: TakePair>(&self, ahead: &Ahead, pair: &Pair, take: T) -> Result<T::Taken> {
        let key = ahead.batch.key(pair);
        if !self.with_values {
            return Ok(take.take(key, b""));
        }
        let take = WithKey { key, take };
        let wrong = |error: Error| of_value(&error, &self.region, key);
        let (offset, value_bytes, attributes) = match ahead.batch.value(pair) {
            Found::Inline(value, codec) => {
                return compression::show(codec, value, take).map_err(wrong);
            }
            Found::Logged {
                offset,
                value_bytes,
                attributes,
            } => (offset, value_bytes, attributes),
        };
        let storage = &self.reader.storage;
        storage.check_open()?;
        let hinted = ahead.batch.nth(HINT_PAIRS - 1).and_then(Pair::record);
        if let Some((offset, bytes)) = hinted {
            storage.mapping.hint(offset.0, fragment_bytes(bytes));
        }
        let at = ValueAt {
            offset,
            region: self.region.id,
            key,
            value_bytes,
            has_attributes: !attributes.is_none(),
        };
        let frames = ResidentLog {
            log: storage.log_pages(),
            views: &storage.views,
            found_in: ahead.view,
        };
        let (log, mut copy) = (storage.log.reader(), Vec::new());
        let left = match attributes.codec() {
            Codec::None => {
                let mut take = Some(take);
                match log.with_resident_value(&frames, &at, &mut copy, &mut take) {
                    Some(taken) => return Ok(taken),
                    None => take,
                }
            }
            codec => {
                let mut unpack = Some(Unpack { codec, take });
                match log.with_resident_value(&frames, &at, &mut copy, &mut unpack) {
                    Some(taken) => return taken.map_err(wrong),
                    None => unpack.map(|unpack| unpack.take),
                }
            }
        };
        self.show_elsewhere(ahead, &at, attributes, left)
    }

    /// Hands a value that is not in frames to `take`, or one of which the place may have changed.
    fn show_elsewhere<T: TakeValue>(
        &self,
        ahead: &Ahead,
        at: &ValueAt<'_>,
        attributes: Attributes,
        take: Option<T>,
    ) -> Result<T::Taken> {
        let (reader, region, key) = (&self.reader, &self.region, at.key);
        let view = reader.storage.views.load();
        let taken = if view.sequence() == ahead.view {
            // The log segments of the view cannot have been reused: that would have changed the view.
            let log = FetchedLog::new(reader.storage.log_pages(), &ahead.fetched);
            let located = Located::Logged {
                offset: at.offset,
                value_bytes: at.value_bytes,
                attributes,
            };
            match take {
                Some(take) => reader.show_logged(region, key, &located, &log, take)?,
                None => None,
            }
        } else {
            drop(view);
            match take {
                Some(take) => reader.get_value(region, key, self.snapshot.point(), take)?,
                None => None,
            }
        };
        taken.ok_or_else(|| Error::corruption("a value that a snapshot sees has gone"))
    }

    fn fetch(&mut self, direction: Direction) -> Result<()> {
        if self.left == 0 || !self.rest.is_left() {
            return Ok(());
        }
        let (last, is_exhausted) = self.locate(direction)?;
        let edge = last.filter(|_| !is_exhausted).map(|last| {
            planted!(ScanStepRepeatsKey => if direction == Direction::Forward {
                return Bound::Included(last);
            });
            Bound::Excluded(last)
        });
        self.ends[direction as usize].start = Some(self.rest.advance(direction, edge));
        Ok(())
    }

    /// How far ahead the next step goes: the memory for it, and the most entries and bytes.
    fn reach(&self) -> (ScanShare, usize, usize) {
        let is_plenty = self.reader.storage.mapping.has_plenty_of_frames();
        let (entries_min, entries_max, bytes_max) = match is_plenty {
            true => (1, STEP_ENTRIES_MAX, STEP_BYTES_MAX),
            false => (STEP_ENTRIES_MIN, FETCHED_ENTRIES_MAX, FETCHED_BYTES_MAX),
        };
        let step_entries = self.step_entries.max(entries_min);
        let entries_max = step_entries.min(self.left).min(entries_max);
        // Of each record its first and its last block come as a whole.
        let entry_bytes = ENTRY_BLOCKS * self.reader.storage.device.block_bytes() as usize;
        let wanted = (entries_max * entry_bytes).max(2 * FETCHED_BYTES_MAX);
        let share = self.reader.scan_memory.take_up_to(wanted);
        let room = share.bytes();
        let entries_max = entries_max.min(room / entry_bytes).max(1);
        (share, entries_max, bytes_max.min(room / 2).max(1))
    }

    /// Finds the pairs of one step for the end that goes in `direction`. Returns the last key, and whether
    /// the range is exhausted. The view is held only in here.
    fn locate(&mut self, direction: Direction) -> Result<(Option<Vec<u8>>, bool)> {
        let view = Guard::into_inner(self.reader.view_of(&self.region)?);
        let nodes = self.reader.storage.nodes(&view, self.region.id);
        self.ends[direction as usize].clear();
        let (mut share, entries_max, bytes_max) = self.reach();
        let room = share.bytes();
        let ahead = &mut self.ends[direction as usize];
        let (start, end) = (
            self.rest.edge(direction),
            self.rest.edge(direction.opposite()),
        );
        let known = self.region.gaps.known();
        let step = Step {
            region: self.region.id,
            at: self.snapshot.point(),
            direction,
            start,
            end,
            entries_max,
            bytes_max,
            dead_max: u64::MAX,
            gaps: known.as_ref().map_or(&[], |known| known.gaps()),
            visibility: Some(&self.reader.visibility),
        };
        ahead.batch.fit(room);
        ahead.batch.expect(entries_max);
        ahead.view = view.sequence();
        let walked = merge_scan::run(&step, &view, &nodes, |key, payload, leaf| {
            ahead.leaves.note(leaf, ahead.batch.len());
            ahead.batch.push(key, payload);
        })?;
        if walked.dead_entries > 0 {
            let passed = &self.reader.scanned_dead;
            passed.fetch_add(walked.dead_entries, Ordering::Relaxed);
        }
        if let Some(run) = &walked.run {
            let moment = self.snapshot.moment();
            self.reader
                .note_run(&self.region, run, moment, &[direction]);
        }
        self.step_entries = (self.step_entries * 2).clamp(STEP_ENTRIES_MIN, STEP_ENTRIES_MAX);
        self.found += ahead.batch.len();
        if self.with_values {
            let rest = room.saturating_sub(ahead.batch.memory_bytes());
            ahead.fetched.set_room(rest);
            self.reader
                .fetch_records(ahead.batch.records(), &mut ahead.fetched)?;
        }
        share.set(ahead.memory_bytes());
        ahead.share = Some(share);
        if ahead.fetched.transfers() > 0 {
            self.reader.charge_scan(
                &view,
                &self.region,
                &ahead.batch,
                &ahead.leaves,
                &ahead.fetched,
                self.found > LONG_PAIRS,
            );
        }
        Ok((ahead.batch.last_key(), walked.is_exhausted))
    }
}

const _: () = assert!(KEY_BYTES_MAX < FETCHED_BYTES_MAX);
