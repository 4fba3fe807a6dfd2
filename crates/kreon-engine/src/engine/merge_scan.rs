//! One step of a scan: the next visible entries of a region, merged from L0', L0 and the levels.

use std::ops::Bound;

use kreon_base::{LogOffset, Lsn, Payload, RegionId, Result};
use kreon_l0::L0;

use crate::keys::{L0Key, split};
use crate::level::{MappedNodes, View};
use crate::tree;

/// Which way a scan goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Ascending keys.
    Forward,
    /// Descending keys.
    Backward,
}

/// Where a visible value is.
#[derive(Debug, PartialEq, Eq)]
pub enum Located {
    /// It was in the index.
    Inline(Vec<u8>),
    /// It is in the log.
    Logged {
        /// Its record.
        offset: LogOffset,
        /// Its length.
        value_bytes: u32,
    },
    /// The key was deleted.
    Deleted,
}

impl From<Payload<'_>> for Located {
    fn from(payload: Payload<'_>) -> Self {
        match payload {
            Payload::Inline { value } => Self::Inline(value.to_vec()),
            Payload::Logged {
                offset,
                value_bytes,
            } => Self::Logged {
                offset,
                value_bytes,
            },
            Payload::Tombstone { .. } => Self::Deleted,
        }
    }
}

/// A level's or an L0's entries of one region, in one direction.
enum Source<'a> {
    L0 {
        cursor: kreon_l0::Cursor<'a>,
        region: RegionId,
        is_valid: bool,
    },
    Level {
        cursor: tree::Cursor<'a, MappedNodes<'a>>,
        is_valid: bool,
    },
}

impl<'a> Source<'a> {
    fn in_l0(l0: &'a L0, region: RegionId) -> Self {
        Self::L0 {
            cursor: l0.cursor(),
            region,
            is_valid: false,
        }
    }

    /// Goes to the first entry from `start` on, in `direction`.
    fn start(&mut self, start: &Bound<Vec<u8>>, direction: Direction) -> Result<()> {
        match self {
            Self::L0 {
                cursor,
                region,
                is_valid,
            } => {
                *is_valid = start_in_l0(cursor, *region, start, direction);
            }
            Self::Level { cursor, is_valid } => {
                *is_valid = start_in_level(cursor, start, direction)?;
            }
        }
        Ok(())
    }

    /// The key it stands on.
    fn key(&self) -> Option<&[u8]> {
        match self {
            Self::L0 {
                cursor,
                region,
                is_valid,
            } => {
                let (found, key) = split(cursor.key()).filter(|_| *is_valid)?;
                (found == *region).then_some(key)
            }
            Self::Level { cursor, is_valid } => is_valid.then(|| cursor.key()),
        }
    }

    /// Moves behind the key it stands on; the newest version of that key before `at`, if any.
    fn take(&mut self, at: Lsn, direction: Direction) -> Result<Option<Located>> {
        match self {
            Self::L0 {
                cursor, is_valid, ..
            } => {
                let visible = cursor.versions().find(|version| version.lsn < at);
                *is_valid = match direction {
                    Direction::Forward => cursor.next(),
                    Direction::Backward => cursor.prev(),
                };
                Ok(visible.map(|version| version.payload.into()))
            }
            Self::Level { cursor, is_valid } => take_in_level(cursor, is_valid, at, direction),
        }
    }
}

fn start_in_l0(
    cursor: &mut kreon_l0::Cursor<'_>,
    region: RegionId,
    start: &Bound<Vec<u8>>,
    direction: Direction,
) -> bool {
    use Direction::{Backward, Forward};
    let at = |key: &[u8]| L0Key::new(region, key);
    match (start, direction) {
        (Bound::Unbounded, Forward) => cursor.seek(at(b"").as_slice()),
        (Bound::Unbounded, Backward) => match region.0.checked_add(1) {
            Some(next) => cursor.seek_before(L0Key::new(RegionId(next), b"").as_slice()),
            None => cursor.last(),
        },
        (Bound::Included(key), Forward) => cursor.seek(at(key).as_slice()),
        (Bound::Excluded(key), Forward) => cursor.seek(at(&successor(key)).as_slice()),
        (Bound::Included(key), Backward) => cursor.seek_before(at(&successor(key)).as_slice()),
        (Bound::Excluded(key), Backward) => cursor.seek_before(at(key).as_slice()),
    }
}

fn start_in_level(
    cursor: &mut tree::Cursor<'_, MappedNodes<'_>>,
    start: &Bound<Vec<u8>>,
    direction: Direction,
) -> Result<bool> {
    use Direction::{Backward, Forward};
    match (start, direction) {
        (Bound::Unbounded, Forward) => cursor.first(),
        (Bound::Unbounded, Backward) => cursor.last(),
        (Bound::Included(key), Forward) => cursor.seek(key),
        (Bound::Excluded(key), Forward) => cursor.seek(&successor(key)),
        (Bound::Included(key), Backward) => cursor.seek_before(&successor(key)),
        (Bound::Excluded(key), Backward) => cursor.seek_before(key),
    }
}

/// The least key greater than `key`.
fn successor(key: &[u8]) -> Vec<u8> {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    next
}

fn take_in_level(
    cursor: &mut tree::Cursor<'_, MappedNodes<'_>>,
    is_valid: &mut bool,
    at: Lsn,
    direction: Direction,
) -> Result<Option<Located>> {
    let key = cursor.key().to_vec();
    let mut visible = None;
    while *is_valid && cursor.key() == key {
        let is_visible = cursor.lsn() < at || cursor.lsn() == Lsn(0);
        // Versions come newest first going forward, oldest first going backward.
        if is_visible && (visible.is_none() || direction == Direction::Backward) {
            visible = Some(cursor.payload()?.into());
        }
        *is_valid = match direction {
            Direction::Forward => cursor.next()?,
            Direction::Backward => cursor.prev()?,
        };
    }
    Ok(visible)
}

/// What one step may fetch.
pub struct StepLimits {
    /// Entries.
    pub entries_max: usize,
    /// Bytes of keys and values.
    pub bytes_max: usize,
}

/// Entries of `region` visible at `at`, from `start` in `direction` until `end` or a limit, handed to
/// `found` in order. Returns whether the range is exhausted.
pub fn step<'a>(
    view: &'a View,
    region: RegionId,
    nodes: &'a [MappedNodes<'a>],
    at: Lsn,
    (start, end): (&Bound<Vec<u8>>, &Bound<Vec<u8>>),
    direction: Direction,
    limits: &StepLimits,
    mut found: impl FnMut(&[u8], Located),
) -> Result<bool> {
    let mut sources = open(view, region, nodes);
    for source in &mut sources {
        source.start(start, direction)?;
    }
    let (mut entries, mut bytes) = (0, 0);
    let mut key = Vec::new();
    while entries < limits.entries_max && bytes < limits.bytes_max {
        if !next_key(&sources, direction, &mut key) || is_behind(&key, end, direction) {
            return Ok(true);
        }
        let mut located = None;
        for source in &mut sources {
            if source.key() == Some(key.as_slice()) {
                let here = source.take(at, direction)?;
                located = located.or(here);
            }
        }
        let value_bytes = match &located {
            None | Some(Located::Deleted) => continue,
            Some(Located::Inline(value)) => value.len(),
            Some(Located::Logged { value_bytes, .. }) => *value_bytes as usize,
        };
        entries += 1;
        bytes += key.len() + value_bytes;
        if let Some(located) = located {
            found(&key, located);
        }
    }
    Ok(false)
}

/// Newest source first.
fn open<'a>(view: &'a View, region: RegionId, nodes: &'a [MappedNodes<'a>]) -> Vec<Source<'a>> {
    let mut sources = vec![Source::in_l0(&view.active, region)];
    if let Some(frozen) = &view.frozen {
        sources.push(Source::in_l0(&frozen.l0, region));
    }
    for (nodes, record) in nodes.iter().zip(view.levels.of(region)) {
        let cursor = tree::Cursor::new(nodes, record);
        sources.push(Source::Level {
            cursor,
            is_valid: false,
        });
    }
    sources
}

/// Puts the nearest key of all sources into `key`; false if there is none.
fn next_key(sources: &[Source<'_>], direction: Direction, key: &mut Vec<u8>) -> bool {
    let keys = sources.iter().filter_map(Source::key);
    let nearest = match direction {
        Direction::Forward => keys.min(),
        Direction::Backward => keys.max(),
    };
    key.clear();
    key.extend_from_slice(nearest.unwrap_or_default());
    nearest.is_some()
}

fn is_behind(key: &[u8], end: &Bound<Vec<u8>>, direction: Direction) -> bool {
    match (end, direction) {
        (Bound::Unbounded, _) => false,
        (Bound::Included(end), Direction::Forward) => key > end.as_slice(),
        (Bound::Excluded(end), Direction::Forward) => key >= end.as_slice(),
        (Bound::Included(end), Direction::Backward) => key < end.as_slice(),
        (Bound::Excluded(end), Direction::Backward) => key <= end.as_slice(),
    }
}
