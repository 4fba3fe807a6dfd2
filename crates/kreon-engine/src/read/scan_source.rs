//! One source of a scan: an L0's or a level's entries of one region, in one direction.

use std::borrow::Cow;
use std::ops::Bound;

use kreon_base::{Attributes, Codec, LogOffset, Lsn, PageNo, Payload, RegionId, Result, Timestamp};
use kreon_l0::L0;

use super::covering::DeadKeys;
use crate::keys::{Direction, L0Key, split};
use crate::level::MappedNodes;
use crate::tree;
use crate::visibility::ReadPoint;

/// Where a visible value is.
#[derive(Debug, PartialEq, Eq)]
pub enum Located {
    /// It was in the index: its bytes as they are stored.
    Inline(Vec<u8>, Attributes),
    /// It is in the log.
    Logged {
        /// Its record.
        offset: LogOffset,
        /// Bytes behind the key there.
        value_bytes: u32,
        /// What is kept beside it.
        attributes: Attributes,
    },
    /// The key was deleted.
    Deleted,
    /// The value has ended, at this time.
    Expired(Timestamp),
}

impl Located {
    /// What an index says to who reads from `point`.
    pub fn of(payload: Payload<'_>, point: ReadPoint<'_>) -> Self {
        let attributes = payload.attributes();
        if let Some(expires) = attributes.expires()
            && point.has_expired(attributes)
        {
            return Self::Expired(expires);
        }
        match payload {
            Payload::Inline { value, attributes } => Self::Inline(value.to_vec(), attributes),
            Payload::Logged {
                offset,
                value_bytes,
                attributes,
            } => Self::Logged {
                offset,
                value_bytes,
                attributes,
            },
            Payload::Tombstone { .. } | Payload::Erased { .. } => Self::Deleted,
        }
    }

    /// How its bytes are packed.
    pub fn codec(&self) -> Codec {
        match self {
            Self::Inline(_, attributes) | Self::Logged { attributes, .. } => attributes.codec(),
            Self::Deleted | Self::Expired(_) => Codec::None,
        }
    }

    /// Where the record of `key` is, and the bytes of key, attributes and value; none if the value is not in the log.
    pub fn record(&self, key: &[u8]) -> Option<(LogOffset, usize)> {
        match self {
            Self::Logged {
                offset,
                value_bytes,
                ..
            } => Some((*offset, key.len() + *value_bytes as usize)),
            Self::Inline(..) | Self::Deleted | Self::Expired(_) => None,
        }
    }

    /// The same as what an index says; none of a deletion.
    pub fn value(&self) -> Option<Payload<'_>> {
        match self {
            Self::Inline(value, attributes) => Some(Payload::Inline {
                value,
                attributes: *attributes,
            }),
            Self::Logged {
                offset,
                value_bytes,
                attributes,
            } => Some(Payload::Logged {
                offset: *offset,
                value_bytes: *value_bytes,
                attributes: *attributes,
            }),
            Self::Deleted | Self::Expired(_) => None,
        }
    }
}

/// What a scan met of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    /// A value.
    Value,
    /// None, for whoever reads at this position or behind it.
    Dead,
    /// A value that has ended, at this time.
    Expired(Timestamp),
}

/// One source of a scan, with its cursor.
pub enum Source<'a> {
    /// L0' or L0.
    L0 {
        /// Over all regions.
        cursor: kreon_l0::Cursor<'a>,
        /// The one that counts.
        region: RegionId,
        /// The key that the cursor stands on, if it is of that region.
        key: Option<&'a [u8]>,
    },
    /// A level.
    Level(tree::Cursor<'a, MappedNodes<'a>>),
    /// A level of which nothing is left.
    Ended,
}

impl<'a> Source<'a> {
    /// The entries of `region` in an L0.
    pub fn in_l0(l0: &'a L0, region: RegionId) -> Self {
        Self::L0 {
            cursor: l0.cursor(),
            region,
            key: None,
        }
    }

    /// Goes to the first entry from `start` on, in `direction`.
    pub fn start(&mut self, start: &Bound<Vec<u8>>, direction: Direction) -> Result<()> {
        let sought = sought(start, direction);
        match self {
            Self::L0 {
                cursor,
                region,
                key,
            } => {
                seek_in_l0(cursor, *region, sought.as_deref(), direction);
                *key = key_in(cursor, *region);
            }
            Self::Level(cursor) => {
                match (sought, direction) {
                    (None, Direction::Forward) => cursor.first()?,
                    (None, Direction::Backward) => cursor.last()?,
                    (Some(key), Direction::Forward) => cursor.seek(&key)?,
                    (Some(key), Direction::Backward) => cursor.seek_before(&key)?,
                };
            }
            Self::Ended => {}
        }
        Ok(())
    }

    /// The key it stands on.
    pub fn key(&self) -> Option<&[u8]> {
        match self {
            Self::L0 { key, .. } => *key,
            Self::Level(cursor) => cursor.is_valid().then(|| cursor.key()),
            Self::Ended => None,
        }
    }

    /// The leaf that it stands in; none: it is an L0, or at its end.
    pub fn leaf(&self) -> Option<PageNo> {
        match self {
            Self::L0 { .. } | Self::Ended => None,
            Self::Level(cursor) => cursor.leaf_page(),
        }
    }

    /// Moves behind `key`, which it stands on; the newest version of that key before `at`, if any. Versions before
    /// `deleted` are dead.
    pub fn take(
        &mut self,
        key: &[u8],
        at: ReadPoint<'_>,
        deleted: Option<Lsn>,
        direction: Direction,
    ) -> Result<Option<Located>> {
        match self {
            Self::L0 {
                cursor,
                region,
                key,
            } => {
                let visible = cursor.versions().find(|version| version.lsn < at.lsn);
                *key = step_in_l0(cursor, *region, direction);
                let is_dead = |lsn: Lsn| deleted.is_some_and(|deleted| lsn < deleted);
                Ok(visible.map(|version| match is_dead(version.lsn) {
                    true => Located::Deleted,
                    false => Located::of(version.payload, at),
                }))
            }
            Self::Level(cursor) => take_in_level(cursor, key, at, direction),
            Self::Ended => Ok(None),
        }
    }

    /// Moves ahead behind `key`, which it alone stands on; shows its newest version before `at` if that is a value, and
    /// says whether it was. No key of it is dead by a deleted range.
    pub fn show_ahead(
        &mut self,
        key: &[u8],
        at: ReadPoint<'_>,
        mut show: impl FnMut(Payload<'_>),
    ) -> Result<Met> {
        let mut show_value = |payload: Payload<'_>| {
            let attributes = payload.attributes();
            if let Some(expires) = attributes.expires()
                && at.has_expired(attributes)
            {
                return Met::Expired(expires);
            }
            if matches!(payload, Payload::Logged { .. } | Payload::Inline { .. }) {
                show(payload);
                return Met::Value;
            }
            Met::Dead
        };
        match self {
            Self::L0 {
                cursor,
                region,
                key,
            } => {
                let visible = cursor.versions().find(|version| version.lsn < at.lsn);
                let met = visible.map_or(Met::Dead, |version| show_value(version.payload));
                *key = step_in_l0(cursor, *region, Direction::Forward);
                Ok(met)
            }
            Self::Level(cursor) => {
                let mut outcome = None;
                loop {
                    let is_visible = cursor.lsn() < at.lsn || cursor.lsn() == Lsn(0);
                    if is_visible && outcome.is_none() {
                        outcome = Some(show_value(cursor.payload()?));
                    }
                    if !cursor.next()? || cursor.key() != key {
                        return Ok(outcome.unwrap_or(Met::Dead));
                    }
                }
            }
            Self::Ended => Ok(Met::Dead),
        }
    }

    /// Moves behind `key`, which it stands on, without a look at what it says of it.
    pub fn pass(&mut self, key: &[u8], direction: Direction) -> Result<()> {
        match self {
            Self::L0 {
                cursor,
                region,
                key,
            } => *key = step_in_l0(cursor, *region, direction),
            Self::Level(cursor) => {
                while cursor.is_valid() && cursor.key() == key {
                    match direction {
                        Direction::Forward => cursor.next()?,
                        Direction::Backward => cursor.prev()?,
                    };
                }
            }
            Self::Ended => {}
        }
        Ok(())
    }

    /// Leaves stretches of dead keys behind, where all of them are dead: in the levels.
    pub fn leave_dead(&mut self, dead: &mut DeadKeys, direction: Direction) -> Result<()> {
        if dead.is_empty() {
            return Ok(());
        }
        while let Self::Level(cursor) = self
            && cursor.is_valid()
            && dead.newest(cursor.key()).is_some()
        {
            let stretch = dead.around(cursor.key());
            match (direction, &stretch.start, &stretch.end) {
                (Direction::Forward, _, Some(end)) => drop(cursor.seek(end)?),
                (Direction::Backward, Some(start), _) => drop(cursor.seek_before(start)?),
                _ => *self = Self::Ended,
            }
        }
        Ok(())
    }

    /// Goes to the first entry from `start` on if it stands before that, in `direction`.
    pub fn skip_to(&mut self, start: &Bound<Vec<u8>>, direction: Direction) -> Result<()> {
        let is_behind = self.key().is_none_or(|key| match (direction, start) {
            (_, Bound::Unbounded) => true,
            (Direction::Forward, Bound::Included(start)) => key >= start.as_slice(),
            (Direction::Forward, Bound::Excluded(start)) => key > start.as_slice(),
            (Direction::Backward, Bound::Included(start)) => key <= start.as_slice(),
            (Direction::Backward, Bound::Excluded(start)) => key < start.as_slice(),
        });
        match is_behind {
            true => Ok(()),
            false => self.start(start, direction),
        }
    }
}

/// Goes to the first key of `region` from `sought` on; backward to the last before it.
fn seek_in_l0(
    cursor: &mut kreon_l0::Cursor<'_>,
    region: RegionId,
    sought: Option<&[u8]>,
    direction: Direction,
) {
    let end = match (direction, sought) {
        (Direction::Forward, sought) => {
            cursor.seek(L0Key::new(region, sought.unwrap_or_default()).as_slice());
            return;
        }
        (Direction::Backward, Some(key)) => Some(L0Key::new(region, key)),
        (Direction::Backward, None) => {
            let next = region.0.checked_add(1);
            next.map(|next| L0Key::new(RegionId(next), b""))
        }
    };
    match end {
        Some(end) => cursor.seek_before(end.as_slice()),
        None => cursor.last(),
    };
}

/// Moves to the next key; returns it if it is of `region`.
#[inline]
fn step_in_l0<'a>(
    cursor: &mut kreon_l0::Cursor<'a>,
    region: RegionId,
    direction: Direction,
) -> Option<&'a [u8]> {
    match direction {
        Direction::Forward => cursor.next(),
        Direction::Backward => cursor.prev(),
    };
    key_in(cursor, region)
}

/// The key that the cursor stands on, if it is of `region`.
#[inline]
fn key_in<'a>(cursor: &kreon_l0::Cursor<'a>, region: RegionId) -> Option<&'a [u8]> {
    let (found, key) = split(cursor.key()).filter(|_| cursor.is_valid())?;
    (found == region).then_some(key)
}

/// The key that a walk from `start` seeks: forward it stands on it or behind it then, backward before it. None: it begins
/// at the very end of all keys.
fn sought(start: &Bound<Vec<u8>>, direction: Direction) -> Option<Cow<'_, [u8]>> {
    match (start, direction) {
        (Bound::Unbounded, _) => None,
        (Bound::Included(key), Direction::Forward)
        | (Bound::Excluded(key), Direction::Backward) => Some(Cow::Borrowed(key)),
        (Bound::Excluded(key), Direction::Forward)
        | (Bound::Included(key), Direction::Backward) => {
            Some(Cow::Owned([key.as_slice(), &[0]].concat()))
        }
    }
}

fn take_in_level(
    cursor: &mut tree::Cursor<'_, MappedNodes<'_>>,
    key: &[u8],
    at: ReadPoint<'_>,
    direction: Direction,
) -> Result<Option<Located>> {
    let mut visible = None;
    while cursor.is_valid() && cursor.key() == key {
        let is_visible = cursor.lsn() < at.lsn || cursor.lsn() == Lsn(0);
        // Versions come newest first going forward, oldest first going backward.
        if is_visible && (visible.is_none() || direction == Direction::Backward) {
            visible = Some(Located::of(cursor.payload()?, at));
        }
        match direction {
            Direction::Forward => cursor.next()?,
            Direction::Backward => cursor.prev()?,
        };
    }
    Ok(visible)
}
