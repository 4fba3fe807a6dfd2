//! Gaps in a walk of a scan: it skips known gaps and notes the dead entries that it passes.

use std::ops::Bound;
use std::sync::Arc;

use kreon_base::Lsn;

use super::known::{Gap, Keys, successor};
use super::{Direction, RUN_ENTRIES_MIN};

/// Dead entries in a row, and the gaps among them.
#[derive(Clone, Debug)]
pub struct DeadRun {
    direction: Direction,
    entries: u64,
    is_begun: bool,
    /// Where it begins, in the walk's direction.
    first: Edge,
    /// How far it goes.
    last: Edge,
}

#[derive(Clone, Debug, Default)]
struct Edge {
    key: Vec<u8>,
    /// The far end of a gap, and not a dead key.
    is_of_gap: bool,
}

impl Edge {
    fn set(&mut self, key: &[u8], is_of_gap: bool) {
        self.key.clear();
        self.key.extend_from_slice(key);
        self.is_of_gap = is_of_gap;
    }

    /// The end of the keys up to here.
    fn as_end(&self) -> Arc<[u8]> {
        match self.is_of_gap {
            true => self.key.as_slice().into(),
            false => successor(&self.key),
        }
    }
}

impl DeadRun {
    /// None yet.
    pub fn new(direction: Direction) -> Self {
        Self {
            direction,
            entries: 0,
            is_begun: false,
            first: Edge::default(),
            last: Edge::default(),
        }
    }

    /// The walk begins in front of all keys. A run at its start then reaches there, and the next walk from there need not
    /// look for the first dead entry. Not at the other end: each put behind the last key would cut the gap.
    pub fn begin_in_front(&mut self) {
        if self.direction == Direction::Forward {
            self.first.set(b"", true);
            self.is_begun = true;
        }
    }

    /// How many dead entries were passed one by one.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Whether it is worth a gap.
    pub fn is_long(&self) -> bool {
        self.entries >= RUN_ENTRIES_MIN
    }

    /// A dead entry was passed. `key` becomes a buffer to be filled anew.
    pub fn pass(&mut self, key: &mut Vec<u8>) {
        if !self.is_begun {
            self.first.set(key, false);
            self.is_begun = true;
        }
        self.entries += 1;
        self.last.is_of_gap = false;
        std::mem::swap(&mut self.last.key, key);
    }

    /// A gap was passed; the walk goes on at `end`.
    pub fn pass_gap(&mut self, end: &Bound<Vec<u8>>) {
        let (Bound::Included(key) | Bound::Excluded(key)) = end else {
            return;
        };
        self.last.set(key, true);
        if !self.is_begun {
            self.first.set(key, true);
            self.is_begun = true;
        }
    }

    /// A key with a value comes: the run is over.
    pub fn end(&mut self) {
        (self.entries, self.is_begun) = (0, false);
    }

    /// The keys from the first to the last; none without an entry.
    pub fn keys(&self) -> Option<Keys> {
        let (start, end) = match self.direction {
            Direction::Forward => (&self.first, self.last.as_end()),
            Direction::Backward => (&self.last, self.first.as_end()),
        };
        (self.entries > 0).then(|| Keys {
            start: start.key.as_slice().into(),
            end: Some(end),
        })
    }
}

/// The gaps that a walk may go past, in its direction.
pub struct Passing<'k> {
    gaps: &'k [Gap],
    at: Lsn,
    direction: Direction,
}

impl<'k> Passing<'k> {
    /// For a walk at the snapshot at `at`.
    pub fn new(gaps: &'k [Gap], at: Lsn, direction: Direction) -> Self {
        Self {
            gaps,
            at,
            direction,
        }
    }

    /// Where the walk goes on that starts at `start`, if that is in a gap. `Some(None)`: there is nothing behind.
    pub fn start(&self, start: &Bound<Vec<u8>>) -> Option<Option<Bound<Vec<u8>>>> {
        if self.gaps.is_empty() {
            return None;
        }
        match (self.direction, start) {
            (Direction::Forward, Bound::Unbounded) => self.behind(b""),
            (Direction::Forward, Bound::Included(key) | Bound::Excluded(key)) => self.behind(key),
            (Direction::Backward, Bound::Included(key)) => self.behind(key),
            (Direction::Backward, Bound::Excluded(key)) => self.before(Some(key)),
            (Direction::Backward, Bound::Unbounded) => self.before(None),
        }
    }

    /// Where the walk goes on that came to `key`, if that is in a gap.
    pub fn behind(&self, key: &[u8]) -> Option<Option<Bound<Vec<u8>>>> {
        let at = self.gaps.partition_point(|gap| !gap.keys.ends_behind(key));
        let gap = self.gaps.get(at)?;
        (self.may_pass(gap) && gap.keys.has(key)).then(|| self.other_end(at))
    }

    /// The same for a walk downwards from the keys before `end`.
    fn before(&self, end: Option<&[u8]>) -> Option<Option<Bound<Vec<u8>>>> {
        let starts_before = |gap: &Gap| end.is_none_or(|end| &*gap.keys.start < end);
        let at = self.gaps.partition_point(starts_before).checked_sub(1)?;
        let gap = self.gaps.get(at)?;
        let reaches_end = end.map_or(gap.keys.end.is_none(), |end| gap.keys.reaches(end));
        (self.may_pass(gap) && reaches_end).then(|| self.other_end(at))
    }

    fn may_pass(&self, gap: &Gap) -> bool {
        gap.since <= self.at
    }

    /// The far end of the gap at place `at` and of its neighbours, as a place to start from.
    fn other_end(&self, mut at: usize) -> Option<Bound<Vec<u8>>> {
        let is_neighbour = |low: &Gap, high: &Gap| low.keys.end.as_ref() == Some(&high.keys.start);
        match self.direction {
            Direction::Forward => {
                while let Some([gap, next]) = self.gaps.get(at..at + 2)
                    && is_neighbour(gap, next)
                    && self.may_pass(next)
                {
                    at += 1;
                }
                let end: Option<&Arc<[u8]>> = self.gaps.get(at)?.keys.end.as_ref();
                end.map(|end| Bound::Included(end.to_vec()))
            }
            Direction::Backward => {
                while let Some([next, gap]) =
                    at.checked_sub(1).and_then(|low| self.gaps.get(low..=at))
                    && is_neighbour(next, gap)
                    && self.may_pass(next)
                {
                    at -= 1;
                }
                let start = &self.gaps.get(at)?.keys.start;
                (!start.is_empty()).then(|| Bound::Excluded(start.to_vec()))
            }
        }
    }
}
