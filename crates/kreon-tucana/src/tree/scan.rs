//! Pairs in the order of their keys, or in the opposite order.
//!
//! A scan takes the places of the records of one leaf at a time, and reads these while nothing is latched. It shows the
//! newest records of each leaf as they are when it comes there. Records that are not in memory are read ahead: the more, the
//! more of them it has met.

use std::collections::VecDeque;
use std::iter;
use std::ops::Range;
use std::sync::Arc;

use arc_swap::ArcSwap;
use kreon_base::{Error, Result};
use kreon_mapping::Fetched;

use super::find::{Side, Target, at_leaf};
use super::generation::Generation;
use super::node::Fences;
use super::parts::Parts;
use crate::format::{Leaf, Location};
use crate::log::{Record, RecordLog};

/// Which way a scan goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The lowest keys first.
    Forward,
    /// The highest keys first.
    Reverse,
}

/// Keys from `low` on, below `high`; `None` is above all keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanRange {
    /// The lowest key that is wanted.
    pub low: Vec<u8>,
    /// The first key that is not wanted any more.
    pub high: Option<Vec<u8>>,
}

/// What a scan looks at.
#[derive(Clone, Copy)]
pub(crate) enum View<'a> {
    /// The newest state.
    Newest(&'a ArcSwap<Generation>),
    /// A state that does not change.
    Frozen(&'a Arc<Generation>),
}

impl View<'_> {
    fn generation(&self) -> Arc<Generation> {
        match self {
            Self::Newest(current) => current.load_full(),
            Self::Frozen(generation) => Arc::clone(generation),
        }
    }
}

/// A scan in progress.
pub struct Scan<'a, L> {
    parts: &'a Parts<L>,
    view: View<'a>,
    cursor: Cursor,
}

/// Where a scan is.
pub(crate) struct Cursor {
    direction: Direction,
    /// What is still to be had from leaves that were not looked at; `None`: nothing.
    rest: Option<ScanRange>,
    /// What was left when the last leaf was looked at. A leaf that was merged meanwhile has keys that were shown before.
    range: ScanRange,
    /// Records of that leaf, some outside of the range included.
    records: VecDeque<Location>,
    /// Where they were taken from: while it is held, none of them is thrown away.
    held: Option<Arc<Generation>>,
    /// Records to fetch at once, when the next one is not in memory.
    ahead: usize,
    /// Those that were fetched, of this leaf.
    fetched: Fetched,
}

/// Each time the next record is not in memory, a scan fetches this many times as many as before...
const AHEAD_GROWTH: usize = 4;
/// ... and this many at the most. The first one may be all that is wanted, and is fetched alone.
const AHEAD_MAX: usize = 64;

/// Most memory of fetched records, in bytes: a scan has it beside the memory of the store.
const FETCHED_BYTES_MAX: usize = 256 << 10;

impl<'a, L: RecordLog> Scan<'a, L> {
    pub(crate) fn new(
        parts: &'a Parts<L>,
        view: View<'a>,
        range: ScanRange,
        direction: Direction,
    ) -> Self {
        Self {
            parts,
            view,
            cursor: Cursor::new(range, direction),
        }
    }

    /// The next pair; `None` behind the last.
    ///
    /// # Errors
    /// Those of the device; `Corruption`. The scan goes on behind a record that cannot be read, and ends at such a leaf.
    pub fn next_pair(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let take = |key: &[u8], value: &[u8]| (key.to_vec(), value.to_vec());
        self.cursor.next(self.parts, self.view, take)
    }
}

/// What came of the record that a leaf points at.
enum Shown<T> {
    Pair(T),
    Before,
    Behind,
    Deletion,
}

impl Cursor {
    /// Before the first pair of a range.
    pub(crate) fn new(range: ScanRange, direction: Direction) -> Self {
        let is_empty = range.high.as_ref().is_some_and(|high| *high <= range.low);
        let mut fetched = Fetched::default();
        fetched.set_room(FETCHED_BYTES_MAX);
        Self {
            direction,
            rest: (!is_empty).then(|| range.clone()),
            range,
            records: VecDeque::new(),
            held: None,
            ahead: 1,
            fetched,
        }
    }

    /// Lends the next pair to `take`; `None` behind the last. All calls are to have views of one tree.
    ///
    /// # Errors
    /// As [`Scan::next_pair`].
    pub(crate) fn next<L: RecordLog, T>(
        &mut self,
        parts: &Parts<L>,
        view: View<'_>,
        take: impl Fn(&[u8], &[u8]) -> T,
    ) -> Result<Option<T>> {
        loop {
            while let Some(location) = self.records.pop_front() {
                let shown = self.show(&*parts.log, location, &take)?;
                match shown {
                    Shown::Before => {}
                    Shown::Behind => {
                        self.rest = None;
                        self.records.clear();
                        return Ok(None);
                    }
                    Shown::Pair(pair) => return Ok(Some(pair)),
                    Shown::Deletion => {
                        return Err(Error::corruption(format!(
                            "a leaf points at a deletion at {}",
                            location.offset
                        )));
                    }
                }
            }
            self.held = None;
            self.fetched.clear();
            let Some(rest) = self.rest.take() else {
                return Ok(None);
            };
            self.range = rest.clone();
            self.rest = self.take_leaf(parts, view, rest)?;
        }
    }

    /// Shows a record, and reads ahead if it is not in memory.
    fn show<L: RecordLog, T>(
        &mut self,
        log: &L,
        location: Location,
        take: &impl Fn(&[u8], &[u8]) -> T,
    ) -> Result<Shown<T>> {
        if let Some(shown) = self.show_at_hand(log, location, take) {
            return Ok(shown);
        }
        if self.ahead > 1 {
            let next = self.records.iter().copied().take(self.ahead - 1);
            log.fetch(iter::once(location).chain(next), &mut self.fetched);
        }
        self.ahead = (self.ahead * AHEAD_GROWTH).min(AHEAD_MAX);
        match self.show_at_hand(log, location, take) {
            Some(shown) => Ok(shown),
            None => log.read(location, |record| self.shown(record, take)),
        }
    }

    fn show_at_hand<L: RecordLog, T>(
        &self,
        log: &L,
        location: Location,
        take: &impl Fn(&[u8], &[u8]) -> T,
    ) -> Option<Shown<T>> {
        let shown = |record: Record<'_>| self.shown(record, take);
        log.read_resident(location, shown)
            .or_else(|| log.read_fetched(location, &self.fetched, shown))
    }

    fn shown<T>(&self, record: Record<'_>, take: &impl Fn(&[u8], &[u8]) -> T) -> Shown<T> {
        match record.value {
            _ if self.is_before(record.key) => Shown::Before,
            _ if self.is_behind(record.key) => Shown::Behind,
            Some(value) => Shown::Pair(take(record.key, value)),
            None => Shown::Deletion,
        }
    }

    /// Whether a key is one that the scan has passed.
    fn is_before(&self, key: &[u8]) -> bool {
        match self.direction {
            Direction::Forward => *key < *self.range.low,
            Direction::Reverse => !self.is_below_high(key),
        }
    }

    /// Whether a key is behind the last one that is wanted.
    fn is_behind(&self, key: &[u8]) -> bool {
        match self.direction {
            Direction::Forward => !self.is_below_high(key),
            Direction::Reverse => *key < *self.range.low,
        }
    }

    fn is_below_high(&self, key: &[u8]) -> bool {
        self.range.high.as_ref().is_none_or(|high| *key < **high)
    }

    /// Takes the records of the next leaf. Returns what is left behind it.
    fn take_leaf<L>(
        &mut self,
        parts: &Parts<L>,
        view: View<'_>,
        rest: ScanRange,
    ) -> Result<Option<ScanRange>> {
        let side = match self.direction {
            Direction::Forward => Side::From(&rest.low),
            Direction::Reverse => Side::Below(rest.high.as_deref()),
        };
        let (direction, records) = (self.direction, &mut self.records);
        let take = |leaf: Leaf<'_>, fences: &Fences| {
            let wanted = wanted(leaf, fences, &rest);
            match direction {
                Direction::Forward => records.extend(wanted.map(|index| leaf.location(index))),
                Direction::Reverse => {
                    records.extend(wanted.rev().map(|index| leaf.location(index)));
                }
            }
            fences.clone()
        };
        let target = Target::Range(side);
        let generation = view.generation();
        let fences = at_leaf(parts, &generation, target, take)?;
        self.held = Some(generation);
        Ok(behind(rest, fences, direction))
    }
}

/// What is left of a range behind a leaf.
fn behind(rest: ScanRange, leaf: Fences, direction: Direction) -> Option<ScanRange> {
    match direction {
        Direction::Forward => {
            let low = leaf.high?.into_vec();
            let is_left = rest.high.as_ref().is_none_or(|high| low < *high);
            is_left.then_some(ScanRange { low, ..rest })
        }
        Direction::Reverse => {
            let high = leaf.low.into_vec();
            let is_left = high > rest.low;
            is_left.then_some(ScanRange {
                high: Some(high),
                ..rest
            })
        }
    }
}

/// The entries of a leaf that may be of a range: all, except those that heads tell are not.
fn wanted(leaf: Leaf<'_>, fences: &Fences, range: &ScanRange) -> Range<usize> {
    // A bound outside of the leaf's range may not have its prefix, so its head would tell nothing.
    let start = match *range.low > *fences.low {
        true => leaf.range_of(leaf.head_of(&range.low)).start,
        false => 0,
    };
    let is_within = |bound: &&Vec<u8>| fences.high.as_ref().is_none_or(|high| ***bound < **high);
    let end = match range.high.as_ref().filter(is_within) {
        Some(bound) => leaf.range_of(leaf.head_of(bound)).end,
        None => leaf.count(),
    };
    start..end.max(start)
}

impl<L: RecordLog> Iterator for Scan<'_, L> {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_pair().transpose()
    }
}
