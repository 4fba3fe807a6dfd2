//! Entries in order.

use std::ops::{Bound, Range};

use super::key::Key;
use super::location::Location;
use super::node::{NONE, Node};
use super::tree::Index;

/// A place in the order of the entries, whether an entry stands there or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot<'a> {
    /// The first N bytes of a key.
    pub bytes: &'a [u8],
    /// Whether these are all.
    pub whole: bool,
    /// The entry with this location, or all entries that look alike.
    pub at: Option<Location>,
}

/// An entry of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The first N bytes of the key.
    pub bytes: &'a [u8],
    /// Whether these are all.
    pub whole: bool,
    /// The place of the item.
    pub at: Location,
}

impl<'a> Entry<'a> {
    /// The place of the entry: a run from there on, itself excluded, continues one that ended with it.
    pub fn spot(&self) -> Spot<'a> {
        Spot {
            at: Some(self.at),
            ..self.group()
        }
    }

    /// The place of all entries that look like this one.
    pub fn group(&self) -> Spot<'a> {
        Spot {
            bytes: self.bytes,
            whole: self.whole,
            at: None,
        }
    }
}

/// The order of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The lowest key first.
    Forward,
    /// The highest key first, and of a tie group the highest location.
    Backward,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// No entry is left between the bounds.
    Bounds,
    /// There are as many as were asked for, and more follow.
    Count,
}

/// Entries copied from an index; kept for several runs, it keeps its memory.
#[derive(Clone, Debug, Default)]
pub struct Run {
    bytes: Vec<u8>,
    entries: Vec<RunEntry>,
}

#[derive(Clone, Debug)]
struct RunEntry {
    bytes: Range<usize>,
    whole: bool,
    at: Location,
}

impl Run {
    /// No entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets the entries.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entry with a number from 0 on.
    pub fn get(&self, number: usize) -> Option<Entry<'_>> {
        self.entries.get(number).map(|entry| self.entry(entry))
    }

    /// The entry that was appended last.
    pub fn last(&self) -> Option<Entry<'_>> {
        self.entries.last().map(|entry| self.entry(entry))
    }

    /// All entries, in the order in which they were appended.
    pub fn iter(&self) -> impl Iterator<Item = Entry<'_>> {
        self.entries.iter().map(|entry| self.entry(entry))
    }

    fn entry(&self, entry: &RunEntry) -> Entry<'_> {
        Entry {
            bytes: &self.bytes[entry.bytes.clone()],
            whole: entry.whole,
            at: entry.at,
        }
    }

    fn push(&mut self, node: Node<'_>, slot: usize) {
        let (start, item) = (self.bytes.len(), node.item(slot));
        item.append_to(&mut self.bytes);
        self.entries.push(RunEntry {
            bytes: start..self.bytes.len(),
            whole: !item.truncated,
            at: Location::from_units(item.at),
        });
    }
}

/// What a run is between: from the first key on, up to before the second.
struct Between<'a> {
    low: Key<'a>,
    high: Option<Key<'a>>,
}

impl Index {
    /// The place of all entries that look like `key`, for bounds of a run.
    ///
    /// A range of keys that begins or ends within a tie group needs the whole group, so its bounds are included: only the
    /// items tell which of them are in the range.
    pub fn spot<'a>(&self, key: &'a [u8]) -> Spot<'a> {
        let key = self.key(key, 0);
        Spot {
            bytes: key.bytes,
            whole: !key.truncated,
            at: None,
        }
    }

    /// Appends entries from `low` to `high` to `run`, at most `count`, from `low` on or backward from `high` on. O(log
    /// entries + count).
    ///
    /// The next run continues from the [`Entry::spot`] of the last entry, excluded, whatever changed in between. An item
    /// of a tie group that moves on the device in between may then be passed over, or come twice. From the
    /// [`Entry::group`] of the last entry on, excluded, a run passes over what is left of its tie group: for callers
    /// that take a group as one.
    pub fn run(
        &self,
        low: Bound<Spot<'_>>,
        high: Bound<Spot<'_>>,
        direction: Direction,
        count: usize,
        run: &mut Run,
    ) -> End {
        let between = Between {
            low: low_key(low),
            high: high_key(high),
        };
        match direction {
            Direction::Forward => self.run_forward(&between, count, run),
            Direction::Backward => self.run_backward(&between, count, run),
        }
    }

    fn run_forward(&self, between: &Between<'_>, mut count: usize, run: &mut Run) -> End {
        let (mut leaf, position) = self.lower_bound(&between.low);
        let mut start = position.slot;
        while leaf != NONE {
            let node = self.nodes.get(leaf);
            let end = between.end_in(node);
            for slot in start..end {
                if count == 0 {
                    return End::Count;
                }
                run.push(node, slot);
                count -= 1;
            }
            if end < node.count() {
                break;
            }
            (leaf, start) = (node.next(), 0);
        }
        End::Bounds
    }

    fn run_backward(&self, between: &Between<'_>, mut count: usize, run: &mut Run) -> End {
        let (mut leaf, mut end) = match &between.high {
            Some(high) => {
                let (leaf, position) = self.lower_bound(high);
                (leaf, position.slot)
            }
            None => self.last_leaf(),
        };
        while leaf != NONE {
            let node = self.nodes.get(leaf);
            let start = node.search(&between.low).slot;
            for slot in (start..end).rev() {
                if count == 0 {
                    return End::Count;
                }
                run.push(node, slot);
                count -= 1;
            }
            if start > 0 {
                break;
            }
            leaf = node.previous();
            end = if leaf == NONE {
                0
            } else {
                self.nodes.get(leaf).count()
            };
        }
        End::Bounds
    }

    /// The last leaf, and the slot behind its last entry.
    fn last_leaf(&self) -> (u32, usize) {
        if self.levels == 0 {
            return (NONE, 0);
        }
        let mut number = self.root;
        for _ in 1..self.levels {
            let node = self.nodes.get(number);
            number = node.child(node.count() - 1);
        }
        (number, self.nodes.get(number).count())
    }
}

impl Between<'_> {
    /// The slot behind the last entry in a leaf that is before the upper bound.
    fn end_in(&self, node: Node<'_>) -> usize {
        self.high
            .as_ref()
            .map_or(node.count(), |high| node.search(high).slot)
    }
}

/// The key from which on entries are inside of a lower bound.
fn low_key(bound: Bound<Spot<'_>>) -> Key<'_> {
    match bound {
        Bound::Unbounded => Key::FIRST,
        Bound::Included(spot) => before(spot),
        Bound::Excluded(spot) => behind(spot),
    }
}

/// The key from which on entries are outside of an upper bound.
fn high_key(bound: Bound<Spot<'_>>) -> Option<Key<'_>> {
    match bound {
        Bound::Unbounded => None,
        Bound::Included(spot) => Some(behind(spot)),
        Bound::Excluded(spot) => Some(before(spot)),
    }
}

fn before(spot: Spot<'_>) -> Key<'_> {
    Key {
        bytes: spot.bytes,
        truncated: !spot.whole,
        at: spot.at.map_or(0, Location::units),
    }
}

fn behind(spot: Spot<'_>) -> Key<'_> {
    Key {
        bytes: spot.bytes,
        truncated: !spot.whole,
        at: spot.at.map_or(Location::UNITS_LIMIT, |at| at.units() + 1),
    }
}
